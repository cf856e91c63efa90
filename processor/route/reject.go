package route

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rejection is an answer of our own, in OpenAI error form.
type Rejection struct {
	Status  int
	Reason  string // short, for labels and code details: one of the reasons above
	Message string // for the client: what is wrong and what to do
	Type    string // OpenAI error type, as vLLM spells it
	Param   string
	// RetryAfter is when it is worth to ask again, in seconds; 0: nothing says.
	RetryAfter int
}

// Body is the rejection as JSON, in the form that OpenAI clients read. An
// empty Param is null.
func (r *Rejection) Body() []byte {
	var body struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    int     `json:"code"`
		} `json:"error"`
	}
	body.Error.Message, body.Error.Type, body.Error.Code = r.Message, r.Type, r.Status
	if r.Param != "" {
		body.Error.Param = &r.Param
	}
	b, err := json.Marshal(body)
	if err != nil {
		//nolint:forbidigo // a violated invariant: strings and an integer always marshal
		panic(fmt.Sprintf("route: marshal of a rejection: %v", err))
	}
	return b
}

func unknownModel(model string) *Rejection {
	return &Rejection{
		Status:  http.StatusNotFound,
		Reason:  ReasonUnknownModel,
		Message: fmt.Sprintf("The model `%s` does not exist. Ask for a model that is served here.", Clean(model)),
		Type:    "NotFoundError",
		Param:   "model",
	}
}

// noModel refuses what names no model where no pool takes it: with a body the
// client can name one, without it there is nothing to be had at the path.
func noModel(hasBody bool) *Rejection {
	if hasBody {
		return &Rejection{
			Status:  http.StatusBadRequest,
			Reason:  ReasonNoModel,
			Message: "The request names no model. Send a JSON object with a top-level `model`.",
			Type:    "BadRequestError",
			Param:   "model",
		}
	}
	return &Rejection{
		Status:  http.StatusNotFound,
		Reason:  ReasonNoModel,
		Message: "Nothing is served at this path. Send a request that names a model.",
		Type:    "NotFoundError",
	}
}

func saturated(pool string, retryAfter int) *Rejection {
	return &Rejection{
		Status:     http.StatusTooManyRequests,
		Reason:     ReasonSaturated,
		Message:    fmt.Sprintf("The servers of the pool `%s` have as much to do as they may. Try again in %d s.", pool, retryAfter),
		Type:       "Too Many Requests",
		RetryAfter: retryAfter,
	}
}

func noEndpoint(pool, reason string, retryAfter int) *Rejection {
	msg := fmt.Sprintf("The pool `%s` has no endpoint. Try again later.", pool)
	if reason == ReasonNotInSubset {
		msg = fmt.Sprintf("No endpoint of the pool `%s` is among those that the gateway allows. Try again later.", pool)
	}
	return &Rejection{
		Status:  http.StatusServiceUnavailable,
		Reason:  reason,
		Message: msg,
		Type:    "Service Unavailable",

		RetryAfter: retryAfter,
	}
}

// maxNamed is how much of a client's string is repeated, in bytes.
const maxNamed = 128

// Clean makes a client's string fit to be repeated in an answer or a line of
// a log: what does not print becomes U+FFFD, and what exceeds 128 bytes is cut
// at a rune.
func Clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > maxNamed {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

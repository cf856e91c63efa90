package processor

import (
	"bytes"
	"net/http"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// AskUsage says whether model servers are asked for usage where the client does
// not ask.
type AskUsage uint8

const (
	// AskNever asks never.
	AskNever AskUsage = iota
	// AskAuto asks where the answer can be hidden from the client again.
	AskAuto
	// AskAlways asks also where this filter does not see the response. The client
	// then sees the usage.
	AskAlways
)

// maxRefusal is how much of an error's body is looked through.
const maxRefusal = 8 << 10

// asks tells whether this request is to ask for usage, as far as its body does
// not decide: whether what comes back can be hidden, and whether its pool is to
// be asked.
func (x *exchange) asks() bool {
	r := &x.request
	if x.cfg.AskUsage == AskNever || x.observe || r.rejected || x.route.Endpoint == "" {
		return false
	}
	if r.form || r.dialect != dialect.Chat && r.dialect != dialect.Completions {
		return false
	}
	switch x.responseMode {
	case wire.ModeStreamed, wire.ModeFullDuplex:
		if codedOnly(r.head.acceptEncoding) {
			return false
		}
	case wire.ModeNone:
		if x.cfg.AskUsage != AskAlways {
			return false
		}
	default:
		return false
	}
	return x.s.usage.ask(x.route.Pool, x.last)
}

// readRefusal collects the beginning of an answer that may refuse what we asked.
func (x *exchange) readRefusal(frame []byte) {
	s := &x.response
	if x.request.usage.Any() && refusal(s.status) {
		s.refusal = append(s.refusal, frame[:min(len(frame), maxRefusal-len(s.refusal))]...)
	}
}

func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
}

// learnUsage takes from a finished exchange whether its pool is to be asked for
// usage from now on.
func (x *exchange) learnUsage(r *meter.Record) {
	pool := x.route.Pool
	if x.cfg.AskUsage == AskNever || pool == "" {
		return
	}
	if x.request.usage.Any() {
		if namesOptions(x.response.refusal) && x.s.usage.refused(pool) {
			x.s.cfg.Logger.Warn("a pool refuses to be asked for usage, and is not asked again", append(x.ids(), "pool", pool, "status", x.response.status)...)
		}
		return
	}
	sent := r.OutputSource == meter.SourceUsage || r.OutputSource == meter.SourceContinuous
	if r.Stream && sent && x.request.told && !x.request.options {
		x.s.usage.sentUnasked(pool, x.last)
	}
}

// namesOptions tells whether an error's body names stream options as its cause.
// Where it only shows the request, they are a member of an object there: a
// quote and a colon follow.
func namesOptions(body []byte) bool {
	for _, name := range []string{"stream_options", "include_usage", "continuous_usage_stats"} {
		for rest := body; ; {
			_, after, found := bytes.Cut(rest, []byte(name))
			if !found {
				break
			}
			rest = after
			quoted := bytes.TrimLeft(after, `\"'`)
			shown := len(quoted) < len(after) && bytes.HasPrefix(bytes.TrimLeft(quoted, " "), []byte(":"))
			if !shown {
				return true
			}
		}
	}
	return false
}

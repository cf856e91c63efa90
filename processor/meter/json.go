package meter

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// startLayout is RFC 3339 to the microsecond, all six digits.
const startLayout = "2006-01-02T15:04:05.000000Z07:00"

// recordJSON is the record's JSON: its members, in their order. What can be
// absent is a pointer and then null.
type recordJSON struct {
	Name            *string          `json:"name"`
	RequestID       *string          `json:"request_id"`
	TraceID         *string          `json:"trace_id"`
	SpanID          *string          `json:"span_id"`
	Start           *string          `json:"start"`
	RequestModel    *string          `json:"request_model"`
	Model           *string          `json:"model"`
	ResponseID      *string          `json:"response_id"`
	Status          *int             `json:"status"`
	Outcome         *string          `json:"outcome"`
	Stream          bool             `json:"stream"`
	Choices         int              `json:"choices"`
	Finish          []*string        `json:"finish"`
	PromptTokens    *int64           `json:"prompt_tokens"`
	CachedTokens    *int64           `json:"cached_tokens"`
	ReasoningTokens *int64           `json:"reasoning_tokens"`
	OutputTokens    *int64           `json:"output_tokens"`
	OutputSource    *string          `json:"output_source"`
	FirstByte       *int64           `json:"first_byte_us"`
	FirstEvent      *int64           `json:"first_event_us"`
	Role            *int64           `json:"role_us"`
	FirstToken      *int64           `json:"first_token_us"`
	FirstTokenKind  *string          `json:"first_token_kind"`
	FirstAnswer     *int64           `json:"first_answer_us"`
	LastToken       *int64           `json:"last_token_us"`
	LongestGap      *int64           `json:"longest_gap_us"`
	End             int64            `json:"end_us"`
	ClientDrain     *int64           `json:"client_drain_us"`
	Events          int64            `json:"events"`
	Frames          int64            `json:"frames"`
	SharedFrames    int64            `json:"shared_frames"`
	KeepAlives      int64            `json:"keep_alives"`
	Bytes           int64            `json:"bytes"`
	Sent            *int64           `json:"sent_bytes"`
	EvidenceEvents  map[string]int64 `json:"evidence_events"`
	ServerMetrics   *serverJSON      `json:"server_metrics"`
	Route           *routeJSON       `json:"route"`
}

type serverJSON struct {
	TimeToFirstTokenMS *float64 `json:"time_to_first_token_ms"`
	GenerationTimeMS   *float64 `json:"generation_time_ms"`
	QueueTimeMS        *float64 `json:"queue_time_ms"`
	MeanITLMS          *float64 `json:"mean_itl_ms"`
	TokensPerSecond    *float64 `json:"tokens_per_second"`

	SpeculativeDecoding json.RawMessage `json:"speculative_decoding,omitempty"`
}

type routeJSON struct {
	Pool       *string  `json:"pool"`
	Endpoint   *string  `json:"endpoint"`
	Served     *string  `json:"served"`
	Policy     *string  `json:"policy"`
	Reason     *string  `json:"reason"`
	Candidates []string `json:"candidates"`
	Attempts   *int     `json:"attempts"`
	Start      *int64   `json:"start_us"`
	Duration   *int64   `json:"duration_us"`
}

// AppendJSON appends the record as one JSON object, without a line end, to b.
// Times are whole microseconds, rounded down; choices without evidence are not
// named in evidence_events; a record that was never routed has no route.
func (r *Record) AppendJSON(b []byte) []byte {
	j := recordJSON{
		Name:            textOrNull(r.Name),
		RequestID:       textOrNull(r.RequestID),
		TraceID:         idOrNull(r.Trace.TraceID[:]),
		SpanID:          idOrNull(r.Trace.SpanID[:]),
		RequestModel:    orNull(r.RequestModel),
		Model:           orNull(r.Model),
		ResponseID:      orNull(r.ResponseID),
		Status:          nonZero(r.Status),
		Outcome:         textOrNull(r.Outcome),
		Stream:          r.Stream,
		Choices:         r.Choices,
		Finish:          make([]*string, 0, len(r.Finish)),
		PromptTokens:    orNull(r.PromptTokens),
		CachedTokens:    orNull(r.CachedTokens),
		ReasoningTokens: orNull(r.ReasoningTokens),
		OutputTokens:    orNull(r.OutputTokens),
		OutputSource:    textOrNull(r.OutputSource),
		FirstByte:       microsOrNull(r.FirstByte),
		FirstEvent:      microsOrNull(r.FirstEvent),
		Role:            microsOrNull(r.Role),
		FirstToken:      microsOrNull(r.FirstToken),
		FirstTokenKind:  textOrNull(r.FirstTokenKind),
		FirstAnswer:     microsOrNull(r.FirstAnswer),
		LastToken:       microsOrNull(r.LastToken),
		LongestGap:      microsOrNull(r.LongestGap),
		End:             micros(r.End),
		ClientDrain:     microsOrNull(r.ClientDrain),
		Events:          r.Events,
		Frames:          r.Frames,
		SharedFrames:    r.SharedFrames,
		KeepAlives:      r.KeepAlives,
		Bytes:           r.Bytes,
		Sent:            orNull(r.Sent),
		EvidenceEvents:  map[string]int64{},
		ServerMetrics:   r.ServerMetrics.json(),
		Route:           r.Route.json(),
	}
	if !r.Start.IsZero() {
		j.Start = textOrNull(r.Start.UTC().Format(startLayout))
	}
	for _, f := range r.Finish {
		j.Finish = append(j.Finish, orNull(f))
	}
	for choice, n := range r.EvidenceEvents {
		if n > 0 {
			j.EvidenceEvents[strconv.Itoa(choice)] = n
		}
	}
	out, err := json.Marshal(&j)
	if err != nil {
		// not covered: only a number that JSON does not have could do it, and the
		// fields of json keep those out.
		panic(fmt.Sprintf("encode a record: %v", err)) //nolint:forbidigo // violated invariant
	}
	return append(b, out...)
}

// MarshalJSON is AppendJSON for encoding/json.
func (r *Record) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

func (m *ServerMetrics) json() *serverJSON {
	if m == nil {
		return nil
	}
	return &serverJSON{
		finiteOrNull(m.TimeToFirstTokenMS), finiteOrNull(m.GenerationTimeMS), finiteOrNull(m.QueueTimeMS),
		finiteOrNull(m.MeanITLMS), finiteOrNull(m.TokensPerSecond), json.RawMessage(m.SpeculativeDecoding),
	}
}

func (r *Route) json() *routeJSON {
	if r.Pool == "" && r.Endpoint == "" && r.Served == "" && r.Policy == "" && r.Reason == "" &&
		len(r.Candidates) == 0 && r.Attempts == 0 {
		return nil
	}
	j := &routeJSON{
		textOrNull(r.Pool), textOrNull(r.Endpoint), textOrNull(r.Served), textOrNull(r.Policy), textOrNull(r.Reason),
		r.Candidates, nonZero(r.Attempts), nil, nil,
	}
	if r.Start != 0 || r.Duration != 0 {
		j.Start, j.Duration = microsOrNull(Some(r.Start)), microsOrNull(Some(r.Duration))
	}
	return j
}

func orNull[T any](o Opt[T]) *T {
	if !o.OK {
		return nil
	}
	return &o.V
}

func textOrNull[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

func nonZero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// idOrNull returns an id as hex digits; all zero is no id.
func idOrNull(id []byte) *string {
	for _, b := range id {
		if b != 0 {
			return textOrNull(hex.EncodeToString(id))
		}
	}
	return nil
}

func microsOrNull(o Opt[time.Duration]) *int64 {
	if !o.OK {
		return nil
	}
	us := micros(o.V)
	return &us
}

// micros returns whole microseconds, rounded down.
func micros(d time.Duration) int64 {
	us := d.Microseconds()
	if d < 0 && time.Duration(us)*time.Microsecond != d {
		us--
	}
	return us
}

// finiteOrNull leaves out what JSON has no number for.
func finiteOrNull(o Opt[float64]) *float64 {
	if math.IsNaN(o.V) || math.IsInf(o.V, 0) {
		return nil
	}
	return orNull(o)
}

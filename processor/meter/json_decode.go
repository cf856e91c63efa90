package meter

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// maxDecodedChoices bounds what the highest choice of a decoded record costs.
const maxDecodedChoices = 1 << 16

// UnmarshalJSON reads what AppendJSON wrote, as far as a record holds it. It
// passes over members that it does not know, so that an older Inferspan can
// read a newer one's records. Where it fails, r is as it was.
func (r *Record) UnmarshalJSON(b []byte) error {
	var j recordJSON
	if err := json.Unmarshal(b, &j); err != nil { //nolint:forbidigo // far from the frame path
		return fmt.Errorf("decode a record of %d bytes: %w", len(b), err)
	}
	out := Record{
		Name:            textOf[string](j.Name),
		RequestID:       textOf[string](j.RequestID),
		RequestModel:    optOf(j.RequestModel),
		Model:           optOf(j.Model),
		ResponseID:      optOf(j.ResponseID),
		Status:          optOf(j.Status).V,
		Outcome:         textOf[Outcome](j.Outcome),
		Stream:          j.Stream,
		Choices:         j.Choices,
		PromptTokens:    optOf(j.PromptTokens),
		CachedTokens:    optOf(j.CachedTokens),
		ReasoningTokens: optOf(j.ReasoningTokens),
		OutputTokens:    optOf(j.OutputTokens),
		OutputSource:    textOf[Source](j.OutputSource),
		FirstByte:       durationOf(j.FirstByte),
		FirstEvent:      durationOf(j.FirstEvent),
		Role:            durationOf(j.Role),
		FirstToken:      durationOf(j.FirstToken),
		FirstTokenKind:  textOf[Kind](j.FirstTokenKind),
		FirstAnswer:     durationOf(j.FirstAnswer),
		LastToken:       durationOf(j.LastToken),
		LongestGap:      durationOf(j.LongestGap),
		End:             time.Duration(j.End) * time.Microsecond,
		ClientDrain:     durationOf(j.ClientDrain),
		Events:          j.Events,
		Frames:          j.Frames,
		SharedFrames:    j.SharedFrames,
		KeepAlives:      j.KeepAlives,
		Bytes:           j.Bytes,
		Sent:            optOf(j.Sent),
		ServerMetrics:   j.ServerMetrics.metrics(),
		Route:           j.Route.route(),
	}
	for _, f := range j.Finish {
		out.Finish = append(out.Finish, optOf(f))
	}
	if err := j.rest(&out); err != nil {
		return fmt.Errorf("decode a record: %w", err)
	}
	*r = out
	return nil
}

// rest reads the members that have a form of their own.
func (j *recordJSON) rest(r *Record) error {
	if j.Start != nil {
		at, err := time.Parse(time.RFC3339Nano, *j.Start)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		r.Start = at
	}
	if err := idOf(r.Trace.TraceID[:], j.TraceID); err != nil {
		return fmt.Errorf("trace_id: %w", err)
	}
	if err := idOf(r.Trace.SpanID[:], j.SpanID); err != nil {
		return fmt.Errorf("span_id: %w", err)
	}
	for text, n := range j.EvidenceEvents {
		choice, err := strconv.Atoi(text)
		if err != nil || choice < 0 || choice >= maxDecodedChoices {
			return fmt.Errorf("evidence_events: choice %q, want 0 to %d", text, maxDecodedChoices-1)
		}
		if short := choice + 1 - len(r.EvidenceEvents); short > 0 {
			r.EvidenceEvents = append(r.EvidenceEvents, make([]int64, short)...)
		}
		r.EvidenceEvents[choice] = n
	}
	return nil
}

func (j *serverJSON) metrics() *ServerMetrics {
	if j == nil {
		return nil
	}
	return &ServerMetrics{
		optOf(j.TimeToFirstTokenMS), optOf(j.GenerationTimeMS), optOf(j.QueueTimeMS),
		optOf(j.MeanITLMS), optOf(j.TokensPerSecond), string(j.SpeculativeDecoding),
	}
}

func (j *routeJSON) route() Route {
	if j == nil {
		return Route{}
	}
	return Route{
		Pool: textOf[string](j.Pool), Endpoint: textOf[string](j.Endpoint), Served: textOf[string](j.Served),
		Policy: textOf[string](j.Policy), Reason: textOf[string](j.Reason),
		Candidates: j.Candidates, Attempts: optOf(j.Attempts).V,
		Start: durationOf(j.Start).V, Duration: durationOf(j.Duration).V,
	}
}

func optOf[T any](p *T) Opt[T] {
	if p == nil {
		return Opt[T]{}
	}
	return Some(*p)
}

func textOf[T ~string](p *string) T { return T(optOf(p).V) }

func durationOf(us *int64) Opt[time.Duration] {
	if us == nil {
		return Opt[time.Duration]{}
	}
	return Some(time.Duration(*us) * time.Microsecond)
}

// idOf reads hex digits into dst; null leaves it all zero.
func idOf(dst []byte, s *string) error {
	if s == nil {
		return nil
	}
	b, err := hex.DecodeString(*s)
	if err != nil || len(b) != len(dst) {
		return fmt.Errorf("%q, want %d hex digits", *s, hex.EncodedLen(len(dst)))
	}
	copy(dst, b)
	return nil
}

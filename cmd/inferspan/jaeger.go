package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// jaegerPast is how far back Jaeger is searched.
const jaegerPast = 7 * 24 * time.Hour

// jaegerTraces is how many traces with an id are shown.
const jaegerTraces = 20

// jaeger asks a Jaeger's API for what the journal no longer has.
type jaeger struct {
	base    string
	service string // the service.name of the Inferspan that sent the spans
}

// jaegerTag is an attribute in Jaeger's form: an array is JSON text.
type jaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

type jaegerSpan struct {
	TraceID       string `json:"traceID"`
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	StartTime     int64  `json:"startTime"` // µs
	Duration      int64  `json:"duration"`  // µs
	References    []struct {
		SpanID string `json:"spanID"`
	} `json:"references"`
	Tags []jaegerTag `json:"tags"`
	Logs []struct {
		Timestamp int64       `json:"timestamp"` // µs
		Fields    []jaegerTag `json:"fields"`
	} `json:"logs"`
}

// lookup returns the records that the spans of exchanges with id make, newest
// first, each a JSON object. What a span does not hold is null.
func (j jaeger) lookup(ctx context.Context, id string) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	search := func(attribute string) string {
		tags, err := json.Marshal(map[string]string{attribute: id})
		if err != nil {
			return "" // text is always JSON
		}
		return "/api/traces?" + url.Values{
			"service": {j.service}, "tags": {string(tags)}, "limit": {strconv.Itoa(jaegerTraces)},
			"start": {strconv.FormatInt(time.Now().Add(-jaegerPast).UnixMicro(), 10)},
		}.Encode()
	}
	paths := []string{search("gen_ai.response.id"), search("inferspan.request.id")}
	if b, err := hex.DecodeString(id); err == nil && len(b) == 16 {
		paths = slices.Insert(paths, 0, "/api/traces/"+id)
	}
	for _, path := range paths {
		spans, err := j.get(ctx, path)
		if err != nil {
			return nil, err
		}
		if records := spanRecords(spans); len(records) > 0 {
			return records, nil
		}
	}
	return nil, fmt.Errorf("jaeger at %s has no span of it either, of the service %s within %d days",
		j.base, j.service, jaegerPast/(24*time.Hour))
}

func (j jaeger) get(ctx context.Context, path string) ([]jaegerSpan, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask Jaeger at %s: %w", j.base, err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask Jaeger: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, lookupBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of Jaeger at %s: %w", j.base, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	var answer struct {
		Data []struct {
			Spans []jaegerSpan `json:"spans"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("jaeger at %s answered %d: %.80q", j.base, resp.StatusCode, body)
	}
	var spans []jaegerSpan
	for _, trace := range answer.Data {
		spans = append(spans, trace.Spans...)
	}
	return spans, nil
}

// spanRecords returns the records of the exchanges among spans, newest first.
func spanRecords(spans []jaegerSpan) [][]byte {
	slices.SortStableFunc(spans, func(a, b jaegerSpan) int { return cmp.Compare(b.StartTime, a.StartTime) })
	var records [][]byte
	for i := range spans {
		if s := (spanFields{&spans[i]}); s.text("inferspan.outcome") != "" {
			records = append(records, onlyKnown(s.record(spans)))
		}
	}
	return records
}

// unsaid are the members of a record that no span holds.
var unsaid = []string{"choices", "events", "frames", "shared_frames", "keep_alives", "bytes", "evidence_events", "longest_gap_us"}

// onlyKnown returns r as JSON with null for what no span holds.
func onlyKnown(r *meter.Record) []byte {
	line := r.AppendJSON(nil)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return line // it is JSON
	}
	for _, name := range unsaid {
		members[name] = json.RawMessage("null")
	}
	out, err := json.Marshal(members)
	if err != nil {
		return line // it was JSON
	}
	return out
}

// spanFields reads a span's attributes and events.
type spanFields struct{ *jaegerSpan }

func (s spanFields) value(key string) any {
	for _, t := range s.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return nil
}

func (s spanFields) text(key string) string {
	v, _ := s.value(key).(string)
	return v
}

func (s spanFields) texts(key string) (out []string) {
	if json.Unmarshal([]byte(s.text(key)), &out) != nil {
		return nil
	}
	return out
}

func (s spanFields) optText(key string) meter.Opt[string] {
	v := s.text(key)
	return meter.Opt[string]{V: v, OK: v != ""}
}

func (s spanFields) number(key string) meter.Opt[float64] {
	v, ok := s.value(key).(float64)
	return meter.Opt[float64]{V: v, OK: ok}
}

func (s spanFields) count(key string) meter.Opt[int64] {
	n := s.number(key)
	return meter.Opt[int64]{V: int64(n.V), OK: n.OK}
}

func (s spanFields) seconds(key string) meter.Opt[time.Duration] {
	n := s.number(key)
	return meter.Opt[time.Duration]{V: time.Duration(math.Round(n.V*1e6)) * time.Microsecond, OK: n.OK}
}

// milliseconds reads seconds, as vLLM gives them.
func (s spanFields) milliseconds(key string) meter.Opt[float64] {
	n := s.number(key)
	n.V *= 1000
	return n
}

// event returns how long after the span's start its last event of a name was.
func (s spanFields) event(name string) (at meter.Opt[time.Duration]) {
	for _, l := range s.Logs {
		for _, f := range l.Fields {
			if f.Key == "event" && f.Value == name {
				at = meter.Some(time.Duration(l.Timestamp-s.StartTime) * time.Microsecond)
			}
		}
	}
	return at
}

// record returns what the span says of its exchange; spans hold its children.
func (s spanFields) record(spans []jaegerSpan) *meter.Record {
	r := &meter.Record{
		RequestID:       s.text("inferspan.request.id"),
		Start:           time.UnixMicro(s.StartTime),
		RequestModel:    s.optText("gen_ai.request.model"),
		Model:           s.optText("gen_ai.response.model"),
		ResponseID:      s.optText("gen_ai.response.id"),
		Status:          int(s.count("http.response.status_code").V),
		Outcome:         meter.Outcome(s.text("inferspan.outcome")),
		PromptTokens:    s.count("gen_ai.usage.input_tokens"),
		CachedTokens:    s.count("gen_ai.usage.cache_read.input_tokens"),
		ReasoningTokens: s.count("gen_ai.usage.reasoning.output_tokens"),
		OutputTokens:    s.count("inferspan.output_tokens"),
		OutputSource:    meter.Source(s.text("inferspan.usage.source")),
		FirstByte:       s.seconds("inferspan.time_to_first_byte"),
		FirstEvent:      s.seconds("inferspan.time_to_first_event"),
		Role:            s.event("inferspan.role"),
		FirstToken:      s.seconds("inferspan.time_to_first_token"),
		FirstTokenKind:  meter.Kind(s.text("inferspan.first_token.kind")),
		FirstAnswer:     s.seconds("inferspan.time_to_first_answer_token"),
		LastToken:       s.event("inferspan.last_token"),
		End:             time.Duration(s.Duration) * time.Microsecond,
		Route: meter.Route{
			Pool: s.text("inferspan.pool"), Endpoint: s.text("inferspan.endpoint"), Served: s.text("inferspan.served"),
			Policy: s.text("inferspan.route.policy"), Reason: s.text("inferspan.route.reason"),
			Candidates: s.texts("inferspan.route.candidates"), Attempts: int(s.count("inferspan.attempts").V),
		},
	}
	r.Stream = r.FirstEvent.OK
	// What is no id leaves the zero one, which stands for none.
	_, _ = hex.Decode(r.Trace.TraceID[:], fixed(s.TraceID, 32))
	_, _ = hex.Decode(r.Trace.SpanID[:], fixed(s.SpanID, 16))
	for _, f := range s.texts("gen_ai.response.finish_reasons") {
		// A choice that was cut has no reason; its span says error.
		r.Finish = append(r.Finish, meter.Opt[string]{V: f, OK: f != "error"})
	}
	queue, prefill, decode := s.milliseconds("inferspan.engine.queue.duration"), s.milliseconds("inferspan.engine.prefill.duration"), s.milliseconds("inferspan.engine.decode.duration")
	if queue.OK || prefill.OK || decode.OK {
		r.ServerMetrics = &meter.ServerMetrics{QueueTimeMS: queue, TimeToFirstTokenMS: prefill, GenerationTimeMS: decode}
	}
	for _, child := range spans {
		if child.OperationName == "route" && len(child.References) == 1 && child.References[0].SpanID == s.SpanID {
			r.Route.Start = time.Duration(child.StartTime-s.StartTime) * time.Microsecond
			r.Route.Duration = time.Duration(child.Duration) * time.Microsecond
		}
	}
	return r
}

// fixed returns hex digits of a length, with the zeros that Jaeger may leave out
// in front; none where there are more.
func fixed(digits string, n int) []byte {
	if len(digits) > n {
		return nil
	}
	return fmt.Appendf(nil, "%0*s", n, digits)
}

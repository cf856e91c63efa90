package telemetry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// spansOf returns the spans that records become.
func spansOf(t *testing.T, c Config, records ...*meter.Record) []sdktrace.ReadOnlySpan {
	t.Helper()
	x := &keepingExporter{}
	tel := open(t, c, x)
	for _, r := range records {
		tel.End(r)
	}
	shut(t, tel)
	return x.spans
}

func exchangeSpan(t *testing.T, spans []sdktrace.ReadOnlySpan) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range spans {
		if _, ok := value(s.Attributes(), keyOutcome); ok {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans with %s among %d, want 1", len(found), keyOutcome, len(spans))
	}
	return found[0]
}

func value(kvs []attribute.KeyValue, k attribute.Key) (attribute.Value, bool) {
	for _, kv := range kvs {
		if kv.Key == k {
			return kv.Value, true
		}
	}
	return attribute.Value{}, false
}

func eventNames(s sdktrace.ReadOnlySpan) []string {
	names := make([]string, 0, len(s.Events()))
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return names
}

func TestSpanOfARichRecord(t *testing.T) {
	spans := spansOf(t, quiet(), richRecord())
	s := exchangeSpan(t, spans)
	if got, want := s.Name(), "chat llama"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if s.SpanKind() != trace.SpanKindClient || s.Parent().IsValid() || s.Status().Code != codes.Unset {
		t.Errorf("kind %v, parent %v, status %v", s.SpanKind(), s.Parent(), s.Status())
	}
	if !s.StartTime().Equal(origin) || s.EndTime().Sub(origin) != 210*ms {
		t.Errorf("from %v to %v", s.StartTime(), s.EndTime())
	}
	sc := s.SpanContext()
	if sc.TraceID() != (trace.TraceID{1, 2}) || sc.SpanID() != (trace.SpanID{3, 4}) || !sc.IsSampled() {
		t.Errorf("span context %v", sc)
	}
	want := map[attribute.Key]string{
		keyOperation: "STRING chat", keyProvider: "STRING vllm", keyRequestModel: "STRING llama",
		keyOutcome: "STRING ok", keyHTTPStatus: "INT64 200", keyRequestID: "STRING req-1",
		keyResponseID: "STRING chatcmpl-7", keyResponseModel: "STRING llama-v2",
		keyFinishReasons: `STRINGSLICE ["stop","error"]`,
		keyRequestStream: "BOOL true", keyRequestMaxTokens: "INT64 64", keyRequestChoices: "INT64 2",
		keyTimeToFirstChunk: "FLOAT64 0.06",
		keyUsageInput:       "INT64 11", keyUsageOutput: "INT64 9", keyUsageCacheRead: "INT64 4", keyUsageReasoning: "INT64 2",
		keyUsageSource: "STRING usage", keyOutputTokens: "INT64 9", keyFirstTokenKind: "STRING reasoning",
		keyStartSource: "STRING envoy",
		keyFirstByte:   "FLOAT64 0.05", keyFirstEvent: "FLOAT64 0.051", keyFirstToken: "FLOAT64 0.06", keyFirstAnswer: "FLOAT64 0.08",
		keyTPOT: "FLOAT64 0.025",
		keyPool: "STRING default", keyEndpoint: "STRING 10.0.0.1:8000", keyServed: "STRING 10.0.0.2:8001",
		keyServerAddress: "STRING 10.0.0.2", keyServerPort: "INT64 8001",
		keyRoutePolicy: "STRING least-load", keyRouteReason: "STRING least_load",
		keyRouteScore: "FLOAT64 0.5", keyPredictedCached: "INT64 3",
		keyRouteCandidates: `STRINGSLICE ["10.0.0.1:8000","10.0.0.2:8001"]`, keyAttempts: "INT64 2",
		keySentBytes: "INT64 900", keyClientDrain: "FLOAT64 0.003",
		keyKeepReason:  "STRING all",
		keyEngineQueue: "FLOAT64 0.005", keyEnginePrefill: "FLOAT64 0.03", keyEngineDecode: "FLOAT64 0.14",
		keyTimelineGaps: "INT64SLICE [0,200,100]", keyTimelineTokens: "INT64SLICE [1,2,1]", keyTimelineStride: "INT64 1",
		keyEventsThinned: "INT64 3",
	}
	got := make(map[attribute.Key]string)
	for _, kv := range s.Attributes() {
		got[kv.Key] = fmt.Sprintf("%v %s", kv.Value.Type(), kv.Value.String())
	}
	for k, w := range want {
		if got[k] != w {
			t.Errorf("%s is %q, want %q", k, got[k], w)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s is %q, want it absent", k, g)
		}
	}
	// What the catalogue promises and this record can't have.
	absent := []attribute.Key{keyErrorType, keyEventsDropped, keyKeepProbability}
	for _, a := range SpanAttributes() {
		_, ok := got[attribute.Key(a.Name)]
		if !ok && !slices.Contains(absent, attribute.Key(a.Name)) {
			t.Errorf("the catalogue's %s is not on the span", a.Name)
		}
	}
	if len(SpanAttributes()) != len(got)+len(absent) {
		t.Errorf("%d attributes, the catalogue has %d", len(got), len(SpanAttributes()))
	}
	wantEvents := []string{
		eventFirstByte, eventRole, eventFirstToken, eventChunk, eventFirstAnswer, eventChunk, eventChunk,
		eventLastToken, eventFinish, eventUsage,
	}
	if got := eventNames(s); !slices.Equal(got, wantEvents) {
		t.Errorf("events %v, want %v", got, wantEvents)
	}
	if e := s.Events()[2]; e.Time.Sub(origin) != 60*ms {
		t.Errorf("first token at %v", e.Time.Sub(origin))
	}
	chunk := s.Events()[5].Attributes
	for k, w := range map[attribute.Key]attribute.Value{
		keyChunkIndex: attribute.IntValue(1), keyChunkChoice: attribute.IntValue(0), keyChunkTokens: attribute.IntValue(2),
		keyChunkBytes: attribute.IntValue(190), keyChunkGap: attribute.Float64Value(.02),
	} {
		if got, ok := value(chunk, k); !ok || got != w {
			t.Errorf("chunk's %s is %v, want %v", k, got, w)
		}
	}
}

func TestRouteIsAChild(t *testing.T) {
	spans := spansOf(t, quiet(), richRecord())
	s := exchangeSpan(t, spans)
	if len(spans) != 2 || spans[0].Name() != "route" {
		t.Fatalf("%d spans", len(spans))
	}
	route := spans[0]
	if route.Parent().SpanID() != s.SpanContext().SpanID() || route.SpanContext().TraceID() != s.SpanContext().TraceID() {
		t.Error("the route span is not the exchange span's child")
	}
	if route.SpanContext().SpanID() == s.SpanContext().SpanID() || !route.SpanContext().SpanID().IsValid() {
		t.Error("the route span has no id of its own")
	}
	if route.StartTime().Sub(origin) != ms || route.EndTime().Sub(origin) != 2*ms {
		t.Errorf("route from %v to %v", route.StartTime(), route.EndTime())
	}
	if _, ok := value(route.Attributes(), keyServed); ok {
		t.Error("the decision knows who served")
	}
	if v, _ := value(route.Attributes(), keyServerAddress); v.AsString() != "10.0.0.1" {
		t.Errorf("%s of the decision is %q", keyServerAddress, v.AsString())
	}
	r := richRecord()
	r.Route = meter.Route{Served: "10.0.0.2:8001"}
	if spans := spansOf(t, quiet(), r); len(spans) != 1 {
		t.Errorf("%d spans of an exchange that we did not route, want 1", len(spans))
	}
}

func TestParentStateAndLink(t *testing.T) {
	r := richRecord()
	r.Trace.ParentID = [8]byte{9}
	r.Trace.State = "vendor=1"
	r.Trace.LinkTraceID, r.Trace.LinkSpanID = [16]byte{5}, [8]byte{6}
	r.Trace.LinkSampled, r.Trace.LinkState = true, "client=2"
	s := exchangeSpan(t, spansOf(t, quiet(), r))
	if s.Parent().SpanID() != (trace.SpanID{9}) || !s.Parent().IsRemote() || s.SpanContext().SpanID() != (trace.SpanID{3, 4}) {
		t.Errorf("parent %v, span %v", s.Parent(), s.SpanContext())
	}
	if got := s.SpanContext().TraceState().String(); got != "vendor=1" {
		t.Errorf("tracestate %q", got)
	}
	state, _ := trace.ParseTraceState("client=2")
	want := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{5}, SpanID: trace.SpanID{6}, Remote: true,
		TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	if l := s.Links(); len(l) != 1 || !l[0].SpanContext.Equal(want) {
		t.Errorf("links %v, want %v", l, want)
	}
}

func TestStatusAndErrorTypeByClass(t *testing.T) {
	for _, c := range []struct {
		outcome   meter.Outcome
		status    int
		errorType string // the server's
		reason    string // the route's
		want      string // "" for no error
	}{
		{meter.OK, 200, "", "", ""},
		{meter.ClientCancelled, 200, "", "", ""},
		{meter.Aborted, 200, "", "", ""},
		{meter.Lost, 200, "", "", ""},
		{meter.HTTPError, 503, "overloaded", "", "503"},
		{meter.HTTPError, 404, "NotFoundError", "", "404"},
		{meter.ErrorInStream, 200, "BadRequestError", "", "BadRequestError"},
		{meter.ErrorInStream, 200, "", "", "error_in_stream"},
		{meter.UpstreamReset, 200, "", "", "upstream_reset"},
		{meter.Truncated, 200, "", "", "truncated"},
		{meter.Rejected, 404, "", "no_model", "no_model"},
		{meter.Rejected, 503, "", "", "rejected"},
	} {
		r := richRecord()
		r.Outcome, r.Status, r.ErrorType, r.Route.Reason = c.outcome, c.status, c.errorType, c.reason
		s := exchangeSpan(t, spansOf(t, quiet(), r))
		got, _ := value(s.Attributes(), keyErrorType)
		if got.AsString() != c.want || (s.Status().Code == codes.Error) != (c.want != "") {
			t.Errorf("%s %d: error.type %q, status %v, want %q", c.outcome, c.status, got.AsString(), s.Status().Code, c.want)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	stop, none := meter.Some("stop"), meter.Opt[string]{}
	for _, c := range []struct {
		outcome meter.Outcome
		finish  []meter.Opt[string]
		want    []string
	}{
		{meter.OK, []meter.Opt[string]{stop, stop}, []string{"stop", "stop"}},
		{meter.OKNoFinish, []meter.Opt[string]{none}, nil},
		{meter.Aborted, []meter.Opt[string]{stop, none}, []string{"stop", "error"}},
		{meter.Truncated, []meter.Opt[string]{none}, []string{"error"}},
		{meter.Lost, []meter.Opt[string]{none}, nil},
		{meter.HTTPError, nil, nil},
	} {
		r := &meter.Record{Outcome: c.outcome, Finish: c.finish, Status: 200}
		if got := finishReasons(r); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.outcome, c.finish, got, c.want)
		}
	}
}

func TestEstimateIsNotUsage(t *testing.T) {
	r := richRecord()
	r.OutputSource = meter.SourceEstimate
	s := exchangeSpan(t, spansOf(t, quiet(), r))
	if _, ok := value(s.Attributes(), keyUsageOutput); ok {
		t.Error("an estimate is on the span as usage")
	}
	if v, _ := value(s.Attributes(), keyOutputTokens); v.AsInt64() != 9 {
		t.Errorf("%s is %v, want 9", keyOutputTokens, v.AsInt64())
	}
}

// TestFirstTokenEventIffTTFT: whatever the marks say.
func TestFirstTokenEventIffTTFT(t *testing.T) {
	for _, c := range []struct{ ttft, mark, want bool }{
		{true, true, true}, {true, false, true}, {false, true, false}, {false, false, false},
	} {
		r := richRecord()
		if !c.ttft {
			r.FirstToken = meter.Opt[time.Duration]{}
		}
		if !c.mark {
			r.Marks = slices.DeleteFunc(r.Marks, func(m meter.Mark) bool { return m.Kind == meter.MarkFirstToken })
		}
		s := exchangeSpan(t, spansOf(t, quiet(), r))
		if got := slices.Contains(eventNames(s), eventFirstToken); got != c.want {
			t.Errorf("TTFT %v, mark %v: event %v, want %v", c.ttft, c.mark, got, c.want)
		}
		if !slices.IsSortedFunc(s.Events(), func(a, b sdktrace.Event) int { return a.Time.Compare(b.Time) }) {
			t.Error("the events are not in time order")
		}
	}
}

func TestDetail(t *testing.T) {
	for _, c := range []struct {
		detail                       string
		milestones, timeline, chunks bool
	}{
		{"off", false, false, false}, {"summary", true, false, false},
		{"timeline", true, true, false}, {"events", true, true, true},
	} {
		cfg := quiet()
		cfg.Trace.Detail = c.detail
		s := exchangeSpan(t, spansOf(t, cfg, richRecord()))
		_, timeline := value(s.Attributes(), keyTimelineGaps)
		names := eventNames(s)
		if slices.Contains(names, eventFirstToken) != c.milestones || slices.Contains(names, eventChunk) != c.chunks || timeline != c.timeline {
			t.Errorf("%s: events %v, timeline %v", c.detail, names, timeline)
		}
	}
}

package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a configuration without an environment.
func quiet() Config {
	return Config{
		Version: "1.2.3",
		Models:  []string{"llama"},
		Logger:  slog.New(slog.DiscardHandler),
		Getenv:  func(string) string { return "" },
	}
}

// environ is a Getenv that knows these variables only.
func environ(kvs ...string) func(string) string {
	return func(key string) string {
		for _, kv := range kvs {
			if v, ok := strings.CutPrefix(kv, key+"="); ok {
				return v
			}
		}
		return ""
	}
}

// fakeExporter is a collector in the test's hand: each export goes to got and
// returns what answer gives.
type fakeExporter struct {
	got    chan []sdktrace.ReadOnlySpan
	answer chan error
}

func newFakeExporter() *fakeExporter {
	return &fakeExporter{got: make(chan []sdktrace.ReadOnlySpan), answer: make(chan error)}
}

func (f *fakeExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case f.got <- spans:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (*fakeExporter) Shutdown(context.Context) error { return nil }

// keepingExporter takes everything.
type keepingExporter struct{ spans []sdktrace.ReadOnlySpan }

func (k *keepingExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.spans = append(k.spans, spans...)
	return nil
}

func (*keepingExporter) Shutdown(context.Context) error { return nil }

// rulesOf are the rules of c.
func rulesOf(tb testing.TB, c Config) *rules {
	tb.Helper()
	c.setDefaults()
	r, err := newRules(c, sdktrace.AlwaysSample(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func open(t *testing.T, c Config, x sdktrace.SpanExporter) *Telemetry {
	t.Helper()
	tel, err := newTelemetry(t.Context(), c, x)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func shut(t *testing.T, tel *Telemetry) {
	t.Helper()
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

var origin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// richRecord is a streamed chat exchange with a value in every field that its
// outcome allows.
func richRecord() *meter.Record {
	gaps := func(bucket int, n int64, sum time.Duration) []meter.GapBucket {
		b := make([]meter.GapBucket, len(bucketsGap)+1)
		b[bucket] = meter.GapBucket{Count: n, Sum: sum}
		return b
	}
	return &meter.Record{
		RequestID: "req-1",
		Trace:     meter.Trace{TraceID: [16]byte{1, 2}, SpanID: [8]byte{3, 4}, Sampled: true, UpstreamSampled: true},
		Start:     origin, StartSource: meter.StartEnvoy,
		Method: "POST", Path: "/v1/chat/completions", Dialect: dialect.Chat,
		Asked:        dialect.Request{Dialect: dialect.Chat, Model: "llama", HasModel: true, Stream: true, N: 2, MaxTokens: 64},
		RequestModel: meter.Some("llama"), Model: meter.Some("llama-v2"), ResponseID: meter.Some("chatcmpl-7"),
		Status: 200, Outcome: meter.OK, Stream: true, Choices: 2,
		Finish:       []meter.Opt[string]{meter.Some("stop"), {}},
		PromptTokens: meter.Some[int64](11), CachedTokens: meter.Some[int64](4), ReasoningTokens: meter.Some[int64](2),
		OutputTokens: meter.Some[int64](9), OutputSource: meter.SourceUsage,
		FirstByte: meter.Some(50 * ms), FirstEvent: meter.Some(51 * ms), Role: meter.Some(51 * ms),
		FirstToken: meter.Some(60 * ms), FirstTokenKind: meter.KindReasoning, FirstAnswer: meter.Some(80 * ms),
		LastToken: meter.Some(200 * ms), LongestGap: meter.Some(20 * ms), Headers: meter.Some(40 * ms), End: 210 * ms,
		Events: 12, Frames: 12, Bytes: 2400, Sent: meter.Some[int64](900), ClientDrain: meter.Some(3 * ms), EvidenceEvents: []int64{9, 1}, Skipped: 1,
		ServerMetrics: &meter.ServerMetrics{
			TimeToFirstTokenMS: meter.Some(30.), GenerationTimeMS: meter.Some(140.), QueueTimeMS: meter.Some(5.),
		},
		Route: meter.Route{
			Pool: "default", Endpoint: "10.0.0.1:8000", Served: "10.0.0.2:8001", Policy: "least-load", Reason: "least_load",
			Candidates: []string{"10.0.0.1:8000", "10.0.0.2:8001"}, Attempts: 2, Start: ms, Duration: ms,
			Score: .5, PredictedCachedTokens: meter.Some[int64](3),
		},
		ITL:  meter.Gaps{Exact: gaps(5, 3, 40*ms), Assumed: gaps(6, 1, 15*ms)},
		Gap:  meter.Gaps{Exact: gaps(8, 2, 45*ms)},
		TPOT: []meter.TPOTSample{{Value: 20 * ms}, {Value: 30 * ms, Assumed: true}},
		Marks: []meter.Mark{
			{At: 50 * ms, Kind: meter.MarkFirstByte},
			{At: 51 * ms, Kind: meter.MarkRole},
			{At: 60 * ms, Kind: meter.MarkFirstToken},
			{At: 60 * ms, Kind: meter.MarkChunk, Tokens: 1, Bytes: 180},
			{At: 80 * ms, Kind: meter.MarkFirstAnswer},
			{At: 80 * ms, Kind: meter.MarkChunk, Index: 1, Tokens: 2, Bytes: 190, Gap: 20 * ms},
			{At: 90 * ms, Kind: meter.MarkChunk, Choice: 1, Bytes: 170},
			{At: 200 * ms, Kind: meter.MarkLastToken},
			{At: 201 * ms, Kind: meter.MarkFinish},
			{At: 202 * ms, Kind: meter.MarkUsage},
		},
		MarksThinned: 3,
		Timeline:     meter.Timeline{Gaps100us: []int32{0, 200, 100}, Tokens: []int32{1, 2, 1}, Stride: 1},
	}
}

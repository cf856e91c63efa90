package telemetry

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

var update = flag.Bool("update", false, "rewrite golden files and docs/telemetry.md")

const openMetrics = "application/openmetrics-text;version=1.0.0"

// scrape returns the metrics page.
func scrape(t *testing.T, tel *Telemetry, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// worked lets the worker finish, without the end of the metrics.
func worked(tel *Telemetry) {
	tel.intake.close()
	<-tel.worked
}

// play tells tel of an exchange as the service does.
func play(tel *Telemetry, r *meter.Record) {
	l := meter.Labels{
		Operation: r.Operation(), Model: r.RequestModel.V, Pool: r.Route.Pool, Endpoint: r.Route.Served, Status: r.Status, Trace: &r.Trace,
	}
	first := func(at meter.Opt[time.Duration], m meter.Milestone) {
		if at.OK {
			tel.First(m, at.V, l)
		}
	}
	first(r.FirstByte, meter.ReachedFirstByte)
	first(r.FirstEvent, meter.ReachedFirstEvent)
	first(r.FirstToken, meter.ReachedFirstToken)
	first(r.FirstAnswer, meter.ReachedFirstAnswer)
	tel.Routed(r.Route, l)
	tel.End(r)
}

// oneEndpoint is a fleet of one, all known of it.
func oneEndpoint() []Endpoint {
	return []Endpoint{{Pool: "default", Address: "10.0.0.2:8001", InFlight: 1, Queue: meter.Some(2.), KVUsage: meter.Some(.5), Healthy: true}}
}

// sample returns the value of the series whose line begins with series, -1
// where there is none.
func sample(t *testing.T, page, series string) float64 {
	t.Helper()
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return v
		}
	}
	return -1
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i, line := range gotLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Fatalf("%s:%d is not current, see what go test -update changes; now:\n%s", path, i+1, line)
		}
	}
	t.Errorf("%s is not current: it has %d lines, now %d", path, len(wantLines), len(gotLines))
}

// TestPageOfOneExchange: the whole page, with exemplars, after one exchange.
func TestPageOfOneExchange(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=test,telemetry.sdk.version=0")
	c := quiet()
	c.Live = func() []meter.Live {
		l := meter.Labels{Operation: "chat", Model: "llama", Pool: "default"}
		return []meter.Live{{Labels: l, Stream: true}, {Labels: l}}
	}
	c.Endpoints, c.Discovery = oneEndpoint, onePool
	tel := open(t, c, &keepingExporter{})
	play(tel, richRecord())
	tel.ScrapeFailed("default", "10.0.0.2:8001", "timeout")
	tel.Overhead("response_body", 3*time.Microsecond)
	tel.Count("panic")
	tel.Unmatched("late")
	tel.Unseen()
	tel.ConfigWatched("file")
	worked(tel)
	page := scrape(t, tel, openMetrics)
	shut(t, tel)

	page = regexp.MustCompile(`go_version="[^"]*"`).ReplaceAllString(page, `go_version="GO"`)
	// An exemplar's time is the clock's, and so is a series' creation.
	page = regexp.MustCompile(`(?m)(# \{[^}]*\} \S+) \S+$`).ReplaceAllString(page, "$1 NOW")
	page = regexp.MustCompile(`(?m)^\S+_created.*\n`).ReplaceAllString(page, "")
	// An exemplar's labels come in any order.
	page = regexp.MustCompile(`\{(span_id="[^"]*"),(trace_id="[^"]*")\}`).ReplaceAllString(page, "{$2,$1}")
	// What the export had sent by then is chance.
	page = regexp.MustCompile(`(?m)^(inferspan_telemetry_sent_total) .*`).ReplaceAllString(page, "$1 N")
	golden(t, filepath.Join("testdata", "page.txt"), page)

	for _, m := range Metrics() {
		if m.Client == "" && !strings.Contains(page, strings.NewReplacer(".", "_").Replace(m.Name)) && m.Name != mNoFirstToken.Name &&
			m.Name != mWasted.Name && m.Name != mStalls.Name && m.Name != mSLORequests.Name && m.Name != mSLOTarget.Name && m.Name != mClockOffset.Name && m.Name != mFolded.Name {
			t.Errorf("%s is not on the page", m.Name)
		}
	}
}

func TestWastedTokens(t *testing.T) {
	const series = `inferspan_wasted_tokens_total{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_outcome=%q,inferspan_pool="default",inferspan_stage=%q}`
	for _, c := range []struct {
		outcome         meter.Outcome
		status          int
		prefill, decode float64
	}{
		{meter.OK, 200, -1, -1},
		{meter.Lost, 200, -1, -1},
		{meter.ClientCancelled, 200, 7, 9},
		{meter.UpstreamReset, 200, 7, 9},
		{meter.HTTPError, 503, 7, 9},
		{meter.HTTPError, 404, -1, -1},
	} {
		tel := open(t, quiet(), nil)
		r := richRecord()
		r.Outcome, r.Status = c.outcome, c.status
		play(tel, r)
		worked(tel)
		page := scrape(t, tel, "")
		shut(t, tel)
		if p, d := sample(t, page, fmt.Sprintf(series, c.outcome, stagePrefill)), sample(t, page, fmt.Sprintf(series, c.outcome, stageDecode)); p != c.prefill || d != c.decode {
			t.Errorf("%s %d: prefill %v, decode %v, want %v and %v", c.outcome, c.status, p, d, c.prefill, c.decode)
		}
	}
}

func TestNoFirstToken(t *testing.T) {
	tel := open(t, quiet(), nil)
	r := richRecord()
	r.Outcome, r.NoFirstToken, r.FirstToken = meter.Aborted, meter.NoTokenAborted, meter.Opt[time.Duration]{}
	play(tel, r)
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	if got := sample(t, page, `inferspan_no_first_token_seconds_sum{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_pool="default",inferspan_reason="aborted"}`); got != .21 {
		t.Errorf("waited %v s, want 0.21", got)
	}
	if strings.Contains(page, "time_to_first_token_seconds_count") || strings.Contains(page, "time_per_output_token_seconds_count") {
		t.Error("an exchange without a token has a TTFT or a TPOT")
	}
}

func TestVoidITLIsNotRecorded(t *testing.T) {
	tel := open(t, quiet(), nil)
	r := richRecord()
	r.ITLVoid = true
	play(tel, r)
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	if strings.Contains(page, "inter_token_latency_seconds_count") || !strings.Contains(page, "chunk_gap_seconds_count") {
		t.Error("a void ITL was recorded, or its gaps were not")
	}
}

// TestUnsampledIsMeasuredAndNotExported: metrics count every exchange.
func TestUnsampledIsMeasuredAndNotExported(t *testing.T) {
	x := &keepingExporter{}
	tel := open(t, quiet(), x)
	r := richRecord()
	r.Trace.Sampled = false
	play(tel, r)
	worked(tel)
	page := scrape(t, tel, openMetrics)
	shut(t, tel)
	if len(x.spans) != 0 {
		t.Errorf("%d spans", len(x.spans))
	}
	if strings.Contains(page, "trace_id") {
		t.Error("an exemplar names a span that goes nowhere")
	}
	if !strings.Contains(page, "gen_ai_server_request_duration_seconds_count") || sample(t, page, "inferspan_telemetry_queued_total") != 0 {
		t.Error("not measured, or queued")
	}
}

// TestExemplarOnlyOfAQueuedSpan: a span that found no room has no exemplar.
func TestExemplarOnlyOfAQueuedSpan(t *testing.T) {
	c := quiet()
	c.Getenv = environ("OTEL_BSP_MAX_QUEUE_SIZE=1")
	tel := open(t, c, &keepingExporter{})
	tel.End(richRecord()) // two spans
	worked(tel)
	page := scrape(t, tel, openMetrics)
	shut(t, tel)
	if strings.Contains(page, "trace_id") || sample(t, page, `inferspan_telemetry_dropped_total{inferspan_reason="queue_full"}`) != 2 {
		t.Errorf("the dropped span has an exemplar, or was not counted:\n%s", page)
	}
}

// TestWorkerBehind: the caller does what the worker can't take.
func TestWorkerBehind(t *testing.T) {
	tel := open(t, quiet(), nil)
	worked(tel) // the intake takes nothing any more
	tel.End(richRecord())
	page := scrape(t, tel, "")
	shut(t, tel)
	if !strings.Contains(page, "gen_ai_server_request_duration_seconds_count") {
		t.Error("the exchange was not measured")
	}
}

func TestGapBucketsKeepTheirSum(t *testing.T) {
	tel := open(t, quiet(), nil)
	bounds := GapBounds()
	r := richRecord()
	r.Gap, r.ITL = meter.Gaps{}, meter.Gaps{Exact: make([]meter.GapBucket, len(bounds)+1)}
	var sum time.Duration
	for i, b := range bounds {
		// Samples at the bound itself, but one: rounding must not lift them over it.
		s := 7*b - 3
		r.ITL.Exact[i] = meter.GapBucket{Count: 7, Sum: s}
		sum += s
	}
	tel.End(r)
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	const series = `inferspan_inter_token_latency_seconds_%s{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_pool="default",inferspan_token_count="exact"%s}`
	for i, b := range bucketsGap {
		if got := sample(t, page, fmt.Sprintf(series, "bucket", fmt.Sprintf(`,le="%v"`, b))); got != float64(7*(i+1)) {
			t.Errorf("up to %v: %v samples, want %d", b, got, 7*(i+1))
		}
	}
	if got := sample(t, page, fmt.Sprintf(series, "sum", "")); time.Duration(got*1e9+.5) != sum {
		t.Errorf("sum %v s, want %v", got, sum)
	}
}

func TestLiveSeriesFallToZero(t *testing.T) {
	live := []meter.Live{{Labels: meter.Labels{Operation: "chat", Model: "llama"}, Stream: true}}
	c := quiet()
	c.Live = func() []meter.Live { return live }
	tel := open(t, c, nil)
	const series = `inferspan_stream_active{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama"}`
	if got := sample(t, scrape(t, tel, ""), series); got != 1 {
		t.Errorf("%v streams, want 1", got)
	}
	live = nil
	if got := sample(t, scrape(t, tel, ""), series); got != 0 {
		t.Errorf("%v streams, want 0", got)
	}
	shut(t, tel)
}

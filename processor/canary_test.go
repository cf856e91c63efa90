package processor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/telemetry"
)

// canary is in everything that nobody but client and server may see.
const canary = "c4n4ry"

// outside is all that leaves the program, but for the traffic itself.
type outside struct {
	sink    *testkit.Sink
	tel     *telemetry.Telemetry
	journal *journal.Journal
	logs    bytes.Buffer
}

// failing keeps the records and writes the log line of those that failed.
type failing struct {
	*journal.Journal
	failures *telemetry.Failures
}

func (f failing) Add(r *meter.Record) {
	f.Journal.Add(r)
	f.failures.Add(r)
}

// real makes b's telemetry, journal and log the real ones.
func (o *outside) real(t *testing.T) func(*Config) {
	t.Helper()
	var err error
	if o.sink, err = testkit.NewSink(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.sink.Close)
	for _, kv := range o.sink.Env() {
		key, value, _ := strings.Cut(kv, "=")
		t.Setenv(key, value)
	}
	log := slog.New(slog.NewTextHandler(&o.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.tel, err = telemetry.New(t.Context(), telemetry.Config{
		Version: "1", Models: []string{"m"}, Logger: log, Trace: telemetry.TraceConfig{Events: "both"},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.journal = journal.New(64 << 20)
	return func(c *Config) {
		c.Telemetry, c.Logger = o.tel, log
		c.Journal = failing{o.journal, telemetry.NewFailures(log)}
		c.Trusted = Trusted{Header: "x-inferspan-secret", Value: canary}
	}
}

// page is the metrics page, as OpenMetrics.
func (o *outside) page() string {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	o.tel.MetricsHandler().ServeHTTP(w, r)
	return w.Body.String()
}

// all is everything, by where it was found, with the lookups of ids.
func (o *outside) all(t *testing.T, ids []string) map[string]string {
	t.Helper()
	found := map[string]string{"metrics page": o.page()}
	if err := o.tel.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		w := httptest.NewRecorder()
		o.journal.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, journal.Path(id), nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s is not in the journal: %d", id, w.Code)
		}
		found["journal"] += w.Body.String()
	}
	found["logs"] = o.logs.String()
	for _, s := range o.sink.Spans(func(testkit.Span) bool { return true }) {
		found["spans"] += s.String() + fmt.Sprint(s.Resource)
	}
	for _, l := range o.sink.Logs() {
		found["log records"] += l.String()
	}
	for _, m := range telemetry.Metrics() {
		for _, e := range o.sink.Metrics(m.Name) {
			found["metrics"] += e.String()
		}
	}
	return found
}

// canaryHead is a request's headers with a canary in each that could have one.
func canaryHead(id string) []string {
	return []string{
		":method", "POST", ":path", "/v1/chat/completions?key=" + canary, ":authority", canary + ".example",
		"content-type", "application/json", "x-request-id", id,
		"authorization", "Bearer " + canary, "cookie", "session=" + canary, "x-api-key", canary,
		"x-inferspan-secret", canary, "x-inferspan-trace", canary + ",force", "user-agent", canary,
		"x-inferspan-" + canary, "1", "baggage", "user=" + canary, "referer", "https://" + canary,
	}
}

const canaryAsk = `{"model":"m","stream":true,"user":"` + canary + `","stop":["` + canary + `"],` +
	`"messages":[{"role":"system","content":"` + canary + `"},{"role":"user","content":[{"type":"text","text":"` + canary + `"}]}],` +
	`"tools":[{"type":"function","function":{"name":"` + canary + `","description":"` + canary + `"}}],"metadata":{"x":"` + canary + `"}}`

func canaryEvent(delta string) string {
	return `data: {"id":"r1","model":"m","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}],"system_fingerprint":"` + canary + `"}` + "\n\n"
}

// canaryResponses are responses of every kind, a canary wherever there is text.
func canaryResponses() map[string]shape {
	stream := []string{
		canaryEvent(`{"role":"assistant","content":""}`), canaryEvent(`{"reasoning_content":"` + canary + `"}`),
		canaryEvent(`{"content":"` + canary + `"}`),
		canaryEvent(`{"tool_calls":[{"index":0,"id":"` + canary + `","function":{"name":"` + canary + `","arguments":"` + canary + `"}}]}`),
	}
	jsonHead := func(status string) []string {
		return []string{":status", status, "content-type", "application/json", "set-cookie", canary, "server", canary}
	}
	failure := `{"error":{"message":"` + canary + `","type":"BadRequestError","param":"` + canary + `","code":400}}`
	return map[string]shape{
		"stream": {response: append(append([]string{": " + canary + "\n\n"}, stream...),
			`data: {"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"`+canary+`"}]}`+"\n\n", "data: [DONE]\n\n")},
		"cut stream":       {response: stream},
		"broken stream":    {response: append(stream[:3:3], "data: {\"choices\": "+canary+"\n\n", canary+"\n\n", "event: "+canary+"\ndata: "+canary+"\n\n")},
		"failing stream":   {response: append(stream[:3:3], "data: "+failure+"\n\n")},
		"refusal":          {response: []string{failure}, responseHead: jsonHead("400")},
		"failure":          {response: []string{failure}, responseHead: jsonHead("503")},
		"text failure":     {response: []string{canary}, responseHead: []string{":status", "500", "content-type", "text/plain; x=" + canary}},
		"whole":            {response: []string{`{"id":"r1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + canary + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`}, responseHead: jsonHead("200")},
		"neither":          {response: []string{canary}, responseHead: jsonHead("200")},
		"coded in a wrong": {response: []string{canary}, responseHead: append(jsonHead("200"), "content-encoding", canary)},
	}
}

// TestCanary: what client and server say to each other is in nothing that
// leaves the program; nor are credentials, cookies and query strings.
func TestCanary(t *testing.T) {
	var o outside
	b := newBench(t, o.real(t))
	b.useRouter(defaultPool(testEndpoint))
	var ids []string
	for _, mode := range []bodyMode{streamed, buffered, duplex} {
		for name, s := range canaryResponses() {
			id := strings.ReplaceAll(fmt.Sprint(mode, "-", name), " ", "-")
			ids = append(ids, id)
			s.head, s.request = canaryHead(id), []string{canaryAsk}
			e := b.inline(mode, streamed)
			play(t, e, mode, streamed, s)
			e.hangUp()
		}
	}
	for i, body := range []string{`{"prompt":"` + canary + `"`, canary} {
		id := fmt.Sprint("broken-request-", i)
		ids = append(ids, id)
		e := b.inline(buffered, streamed)
		play(t, e, buffered, streamed, shape{head: canaryHead(id), request: []string{body}, response: []string{canary}})
		e.hangUp()
	}
	b.drained()
	all := o.all(t, ids)
	for _, id := range ids {
		if !strings.Contains(all["spans"], id) {
			t.Errorf("%s has no span", id)
		}
	}
	for where, text := range all {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s: …%s…", where, text[max(0, i-200):min(len(text), i+40)])
		}
		if text == "" {
			t.Errorf("%s: there is nothing", where)
		}
	}
}

// TestHostileModels: ten thousand made-up names leave the real ones visible.
func TestHostileModels(t *testing.T) {
	var o outside
	b := newBench(t, o.real(t))
	b.useRouter(defaultPool(testEndpoint))
	exchange := func(model, status string) {
		e := b.inline(buffered, streamed)
		e.send(requestHeaders(false, chatHead()...))
		e.recv()
		e.send(requestBody(`{"model":"`+model+`"}`, true))
		e.recv()
		e.send(responseHeaders(true, ":status", status))
		e.recv()
		e.hangUp()
	}
	exchange("served-1", "200")
	for i := range 10_000 {
		exchange(fmt.Sprintf("hostile-%d", i), "404")
	}
	exchange("served-2", "200")
	exchange("m", "200")
	b.drained()
	// The worker's last records are in what is sent at the end.
	if err := o.tel.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	all := o.sink.Metrics("inferspan.requests")
	counts := map[string]float64{}
	for _, p := range testkit.Points(all[len(all)-1]) {
		for _, kv := range p.Attributes {
			if kv.GetKey() == "gen_ai.request.model" {
				counts[kv.GetValue().GetStringValue()] += p.Value
			}
		}
	}
	if len(counts) != 4 || counts["served-1"] != 1 || counts["served-2"] != 1 || counts["m"] != 1 || counts["_OTHER"] != 10_000 {
		t.Errorf("requests by model: %v", counts)
	}
}

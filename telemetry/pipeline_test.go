package telemetry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/meter"
)

// waitFor bounds what a test waits for; it is never reached where all is well.
const waitFor = 20 * time.Second

// TestOverOTLP: from Begin to what a collector has, over gRPC, with nothing but
// the environment to say where to.
func TestOverOTLP(t *testing.T) {
	sink, err := testkit.NewSink()
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, kv := range sink.Env() {
		key, value, _ := strings.Cut(kv, "=")
		t.Setenv(key, value)
	}
	t.Setenv("OTEL_SERVICE_NAME", "gateway")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=9,deployment.environment.name=test")
	t.Setenv("POD_UID", "pod-1")
	c := quiet()
	c.Getenv, c.Endpoints, c.Discovery = nil, oneEndpoint, onePool
	tel, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r := richRecord()
	r.Trace = tel.Begin(meter.Begin{Operation: "chat", Model: "llama", ClientTraceparent: clientSampled})
	play(tel, r)
	tel.ScrapeFailed("default", "10.0.0.2:8001", "timeout")

	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	span, err := sink.WaitSpan(ctx, func(s testkit.Span) bool { return s.GetName() == "chat llama" })
	if err != nil {
		t.Fatal(err)
	}
	if got := [16]byte(span.GetTraceId()); got != r.Trace.TraceID || got[0] != 0x22 {
		t.Errorf("trace %x, want the client's", got)
	}
	if [8]byte(span.GetSpanId()) != r.Trace.SpanID || span.GetParentSpanId()[0] != 0x22 {
		t.Errorf("span %x, parent %x", span.GetSpanId(), span.GetParentSpanId())
	}
	if !testkit.HasAttrs(span.Resource, map[string]any{
		"service.name": "gateway", "service.version": "9", "service.instance.id": "pod-1", "deployment.environment.name": "test",
	}) {
		t.Errorf("resource %v", span.Resource)
	}
	if len(testkit.SpanEvents(span, eventFirstToken)) != 1 {
		t.Error("no event for the first token")
	}
	shut(t, tel) // the last metrics go out with it
	for _, m := range Metrics() {
		if m.Client != "" {
			continue
		}
		switch m.Name {
		case mConfigReloads.Name, mConfigFailures.Name, mConfigCurrent.Name,
			mNoFirstToken.Name, mStalls.Name, mStreamTokens.Name, mSilence.Name, mClockOffset.Name, mSLORequests.Name, mSLOTarget.Name, mWasted.Name, mFolded.Name, mOverhead.Name, mFaults.Name, mUnmatched.Name, mUnseen.Name, mActive.Name, mStreamActive.Name:
			continue // nothing of the kind happened
		}
		all := sink.Metrics(m.Name)
		if len(all) == 0 {
			t.Errorf("%s did not arrive", m.Name)
			continue
		}
		checkAgainstCatalogue(t, m, all[len(all)-1])
	}
	sent := sink.Metrics(mSent.Name)
	if p := testkit.Points(sent[len(sent)-1]); len(p) != 1 || p[0].Value != 2 {
		t.Errorf("spans sent: %v, want 2", p)
	}
}

func checkAgainstCatalogue(t *testing.T, m Metric, got testkit.Metric) {
	t.Helper()
	if got.GetUnit() != m.Unit || got.GetDescription() != m.Description {
		t.Errorf("%s: unit %q, description %q", m.Name, got.GetUnit(), got.GetDescription())
	}
	for _, p := range got.GetHistogram().GetDataPoints() {
		if !slices.Equal(p.GetExplicitBounds(), m.Buckets) {
			t.Errorf("%s: buckets %v, want %v", m.Name, p.GetExplicitBounds(), m.Buckets)
		}
	}
	allowed := slices.Clone(m.Attributes)
	if m.Common {
		allowed = append(allowed, commonAttributes()...)
	}
	for _, p := range testkit.Points(got) {
		for _, kv := range p.Attributes {
			if !slices.Contains(allowed, kv.GetKey()) {
				t.Errorf("%s carries %s, which the catalogue does not know", m.Name, kv.GetKey())
			}
		}
	}
}

// TestOverHTTP: the same over http/protobuf.
func TestOverHTTP(t *testing.T) {
	var traces, metrics atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/v1/traces":
			traces.Add(1)
		case "/v1/metrics":
			metrics.Add(1)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	c := quiet()
	c.Getenv = nil
	tel, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	play(tel, richRecord())
	shut(t, tel)
	if traces.Load() == 0 || metrics.Load() == 0 {
		t.Errorf("%d exports of spans, %d of metrics", traces.Load(), metrics.Load())
	}
}

// TestWhatIsExported: which variables switch what.
func TestWhatIsExported(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
	for _, c := range []struct {
		env             []string
		traces, metrics bool
	}{
		{nil, false, false},
		{[]string{"OTEL_TRACES_EXPORTER=otlp"}, false, false},
		{[]string{endpoint}, true, true},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1"}, true, false},
		{[]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1"}, false, true},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=none"}, false, true},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=none"}, true, false},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=prometheus"}, true, false},
		{[]string{endpoint, "OTEL_METRICS_EXPORTER=prometheus, otlp"}, true, true},
		{[]string{endpoint, "OTEL_TRACES_EXPORTER=zipkin"}, false, true},
		{[]string{endpoint, "OTEL_SDK_DISABLED=true"}, false, false},
		{[]string{endpoint, "OTEL_SDK_DISABLED=no"}, true, true},
	} {
		e := environment{get: environ(c.env...), log: quiet().Logger}
		if got := e.exports("TRACES"); got != c.traces {
			t.Errorf("%v: traces %v, want %v", c.env, got, c.traces)
		}
		if got := e.exports("METRICS"); got != c.metrics {
			t.Errorf("%v: metrics %v, want %v", c.env, got, c.metrics)
		}
	}
}

// An endpoint that can't be meant is told at the start, by its variable.
func TestEndpoints(t *testing.T) {
	const all, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	f := func(protocol, want string, env ...string) {
		t.Helper()
		e := environment{get: environ(append(env, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol)...), log: quiet().Logger}
		got := ""
		if _, err := e.protocol("TRACES"); err != nil {
			got = err.Error()
		}
		if want != "" {
			want = "environment variable " + want + ", want a URL such as http://127.0.0.1:4317"
		}
		if got != want {
			t.Errorf("%s, %v: error %q, want %q", protocol, env, got, want)
		}
	}
	for _, protocol := range []string{protocolGRPC, protocolHTTP, protocolHTTPJSON} {
		f(protocol, "")
		for _, endpoint := range []string{"http://127.0.0.1:4317", "https://[::1]:4317/base", "HTTP://collector"} {
			f(protocol, "", all+"="+endpoint)
		}
		for _, endpoint := range []string{"not a url", "collector", "127.0.0.1:4317", "http://", "http:4317", "http://a:b", "/run/x", ":4317", "http://a b"} {
			f(protocol, fmt.Sprintf("%s is %q", all, endpoint), all+"="+endpoint)
		}
		f(protocol, own+` is "none"`, all+"=http://a:1", own+"=none")
		f(protocol, "", all+"=none", own+"=http://a:1")
		f(protocol, all+` is "a:port"`, all+"=http://user:secret@a:port")
	}
	for _, endpoint := range []string{"collector:4317", "dns:///collector:4317", "unix:///run/otel.sock", "//collector:4317"} {
		f(protocolGRPC, "", all+"="+endpoint)
		f(protocolHTTP, fmt.Sprintf("%s is %q", all, endpoint), all+"="+endpoint)
	}
}

// TestNothingIsTriedWithoutAnEndpoint: not even counted.
func TestNothingIsTriedWithoutAnEndpoint(t *testing.T) {
	tel := open(t, quiet(), nil)
	if tel.export != nil {
		t.Error("spans are exported")
	}
	play(tel, richRecord())
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	if strings.Contains(page, "inferspan_telemetry_queued") || strings.Contains(page, "inferspan_telemetry_dropped") {
		t.Error("spans that nobody wants are counted")
	}
}

func TestDisabledSDK(t *testing.T) {
	c := quiet()
	c.Getenv = environ("OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
	tel := open(t, c, nil)
	play(tel, richRecord())
	worked(tel)
	if page := scrape(t, tel, ""); page != "" {
		t.Errorf("page %q", page)
	}
	shut(t, tel)
}

// TestShutdownKeepsItsDeadline: however the collector hangs.
func TestShutdownKeepsItsDeadline(t *testing.T) {
	x := newFakeExporter()
	tel := open(t, quiet(), x)
	play(tel, richRecord())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-x.got
		cancel()
	}()
	if err := tel.Shutdown(ctx); err == nil {
		t.Error("no error, though spans were left")
	}
	tel.End(richRecord()) // too late, and harmless
}

func TestFaultyConfiguration(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Trace.Detail = "all" }, `trace.detail is "all", allowed are off, summary, timeline, events`},
		{func(c *Config) { c.ClientMetrics = "2" }, `metrics.client is "2", allowed are off, genai-0.1, 1.41`},
		{func(c *Config) { c.Trace.ClientContext = "x" }, `trace.client_context is "x", allowed are parent, link, ignore`},
		{func(c *Config) { c.Trace.ParentSampled = "x" }, `trace.parent_sampled is "x", allowed are respect, ignore`},
		{func(c *Config) { c.Trace.UpstreamSampled = "x" }, `trace.upstream_sampled is "x", allowed are head, always`},
		{func(c *Config) {
			c.Getenv = environ("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=udp")
		}, `environment variable OTEL_EXPORTER_OTLP_PROTOCOL is "udp", allowed are grpc, http/protobuf, http/json`},
		{func(c *Config) {
			c.Getenv = environ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=udp")
		}, `environment variable OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "udp", allowed are grpc, http/protobuf, http/json`},
		{func(c *Config) { c.Getenv = environ("OTEL_EXPORTER_OTLP_ENDPOINT=not a url") },
			`environment variable OTEL_EXPORTER_OTLP_ENDPOINT is "not a url", want a URL such as http://127.0.0.1:4317`},
		{func(c *Config) { c.Getenv = environ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=nowhere") },
			`environment variable OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is "nowhere", want a URL such as http://127.0.0.1:4317`},
	} {
		cfg := quiet()
		c.change(&cfg)
		if _, err := New(t.Context(), cfg); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

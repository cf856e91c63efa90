package telemetry

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

const (
	envoySampled   = "00-11111111111111111111111111111111-1111111111111111-01"
	clientSampled  = "00-22222222222222222222222222222222-2222222222222222-01"
	clientSilenced = "00-22222222222222222222222222222222-2222222222222222-00"
)

// spySampler counts its calls and keeps the last.
type spySampler struct {
	sdktrace.Sampler
	calls int
	last  sdktrace.SamplingParameters
}

func (s *spySampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.calls++
	s.last = p
	return s.Sampler.ShouldSample(p)
}

// TestTracestateIsCapped: as the W3C says, long members first and then the last.
func TestTracestateIsCapped(t *testing.T) {
	member := func(key string, size int) string { return key + "=" + strings.Repeat("v", size-len(key)-1) }
	list := func(members ...string) string { return strings.Join(members, ",") }
	short, most, long := member("s", 100), member("m", 128), member("l", 129)
	short2, short3, short4, short5 := member("t", 100), member("u", 100), member("v", 100), member("w", 107)
	for name, c := range map[string]struct{ state, want string }{
		"none":              {"", ""},
		"short":             {list(short, long), list(short, long)},
		"to the byte":       {list(short, short2, short3, short4, member("w", 108)), list(short, short2, short3, short4, member("w", 108))},
		"long first":        {list(long, short, short2, short3, most), list(short, short2, short3, most)},
		"the last long one": {list(long, member("k", 200), short, member("x", 180)), list(long, member("k", 200), short)},
		"then the last":     {list(short, short2, short3, short4, short5, member("x", 3)), list(short, short2, short3, short4, short5)},
		"not a list":        {"=", ""},
	} {
		h := newHead(traceConfig("", "", ""), sdktrace.AlwaysSample())
		if got := h.begin(meter.Begin{ClientTraceparent: clientSampled, ClientTracestate: c.state}).State; got != c.want {
			t.Errorf("%s: %d bytes %.60s, want %d bytes", name, len(got), got, len(c.want))
		}
	}
}

func traceConfig(client, sampled, upstream string) TraceConfig {
	c := Config{Trace: TraceConfig{ClientContext: client, ParentSampled: sampled, UpstreamSampled: upstream}}
	c.setDefaults()
	return c.Trace
}

func TestParentModes(t *testing.T) {
	const (
		none = byte(0)
		env  = byte(0x11)
		cli  = byte(0x22)
	)
	for _, c := range []struct {
		name                    string
		client                  string
		envoy, clients          string
		trace, parent, linked   byte
		sampled                 bool
		ignoreSampled, upstream string
	}{
		{name: "none", sampled: true},
		{name: "client", clients: clientSampled, trace: cli, parent: cli, sampled: true},
		{name: "envoy wins", envoy: envoySampled, clients: clientSilenced, trace: env, parent: env, sampled: true},
		{name: "envoy wins over link", client: "link", envoy: envoySampled, clients: clientSampled, trace: env, parent: env, sampled: true},
		{name: "link", client: "link", clients: clientSilenced, linked: cli, sampled: true},
		{name: "sampled link", client: "link", clients: clientSampled, linked: cli, sampled: true},
		{name: "ignore", client: "ignore", clients: clientSilenced, sampled: true},
		{name: "respect silence", clients: clientSilenced, trace: cli, parent: cli},
		{name: "ignore silence", clients: clientSilenced, ignoreSampled: "ignore", trace: cli, parent: cli, sampled: true},
		{name: "garbage", clients: "00-zz-11-01", sampled: true},
	} {
		spy := &spySampler{Sampler: sdktrace.ParentBased(sdktrace.AlwaysSample())}
		h := newHead(traceConfig(c.client, c.ignoreSampled, c.upstream), spy)
		got := h.begin(meter.Begin{
			Operation: "chat", Model: "llama", EnvoyTraceparent: c.envoy,
			ClientTraceparent: c.clients, ClientTracestate: "vendor=1",
		})
		if spy.calls != 1 {
			t.Errorf("%s: %d head decisions, want 1", c.name, spy.calls)
		}
		if c.trace != none && got.TraceID[0] != c.trace || got.ParentID[0] != c.parent || got.LinkTraceID[0] != c.linked || got.LinkSpanID[0] != c.linked {
			t.Errorf("%s: %x parent %x link %x", c.name, got.TraceID, got.ParentID, got.LinkTraceID)
		}
		if c.trace == none && (got.TraceID[0] == env && got.TraceID[1] == env || got.TraceID[0] == cli && got.TraceID[1] == cli) {
			t.Errorf("%s: trace %x is another's", c.name, got.TraceID)
		}
		if got.Sampled != c.sampled || got.UpstreamSampled != c.sampled {
			t.Errorf("%s: sampled %v, upstream %v, want %v", c.name, got.Sampled, got.UpstreamSampled, c.sampled)
		}
		wantLinkState := ""
		if c.linked == cli {
			wantLinkState = "vendor=1"
		}
		if got.LinkSampled != (c.linked == cli && c.clients == clientSampled) || got.LinkState != wantLinkState {
			t.Errorf("%s: link sampled %v, state %q", c.name, got.LinkSampled, got.LinkState)
		}
		if wantState := c.parent == cli; (got.State == "vendor=1") != wantState {
			t.Errorf("%s: tracestate %q", c.name, got.State)
		}
		if got.SpanID == [8]byte{} || got.TraceID == [16]byte{} {
			t.Errorf("%s: no ids", c.name)
		}
	}
}

func TestSamplerSeesTheStart(t *testing.T) {
	spy := &spySampler{Sampler: sdktrace.AlwaysSample()}
	got := newHead(traceConfig("", "", ""), spy).begin(meter.Begin{Operation: "chat", Model: "llama"})
	p := spy.last
	if p.Name != "chat llama" || p.Kind != trace.SpanKindClient || p.TraceID != got.TraceID {
		t.Errorf("name %q, kind %v, trace %v", p.Name, p.Kind, p.TraceID)
	}
	set := attribute.NewSet(p.Attributes...)
	for k, want := range map[attribute.Key]string{keyOperation: "chat", keyProvider: "vllm", keyRequestModel: "llama"} {
		if v, _ := set.Value(k); v.AsString() != want {
			t.Errorf("%s is %q, want %q", k, v.AsString(), want)
		}
	}
}

func TestUpstreamSampledAlways(t *testing.T) {
	got := newHead(traceConfig("", "", "always"), sdktrace.NeverSample()).begin(meter.Begin{})
	if got.Sampled || !got.UpstreamSampled {
		t.Errorf("sampled %v, upstream %v", got.Sampled, got.UpstreamSampled)
	}
}

func TestSamplerFromEnvironment(t *testing.T) {
	unsampled := meter.Begin{ClientTraceparent: clientSilenced}
	for _, c := range []struct {
		env           []string
		root, silence bool // whether a root, and a silenced parent's child, is sampled
	}{
		{nil, true, false},
		{[]string{"OTEL_TRACES_SAMPLER=always_on"}, true, true},
		{[]string{"OTEL_TRACES_SAMPLER=always_off"}, false, false},
		{[]string{"OTEL_TRACES_SAMPLER=parentbased_always_off"}, false, false},
		{[]string{"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"}, false, false},
		{[]string{"OTEL_TRACES_SAMPLER=traceidratio"}, true, true},
		{[]string{"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=2"}, true, false},
		{[]string{"OTEL_TRACES_SAMPLER=nonsense"}, true, false},
		{[]string{"OTEL_SDK_DISABLED=true"}, false, false},
	} {
		e := environment{get: environ(c.env...), log: quiet().Logger}
		h := newHead(traceConfig("", "", ""), e.sampler())
		if got := h.begin(meter.Begin{}).Sampled; got != c.root {
			t.Errorf("%v: root sampled %v, want %v", c.env, got, c.root)
		}
		if got := h.begin(unsampled).Sampled; got != c.silence {
			t.Errorf("%v: child sampled %v, want %v", c.env, got, c.silence)
		}
	}
}

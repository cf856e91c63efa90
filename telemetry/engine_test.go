package telemetry

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestEngineSpans: the server's phases lie around the first event, and are
// counted as the spans that they are.
func TestEngineSpans(t *testing.T) {
	c := quiet()
	c.Trace.EngineSpans = true
	x := &keepingExporter{}
	tel := open(t, c, x)
	tel.End(richRecord())
	worked(tel)
	shut(t, tel)
	parent := exchangeSpan(t, x.spans).SpanContext()
	found := map[string]string{}
	for _, s := range x.spans {
		if synthetic, ok := value(s.Attributes(), keySynthetic); ok {
			if !synthetic.AsBool() || s.Parent().SpanID() != parent.SpanID() || s.SpanContext().TraceID() != parent.TraceID() {
				t.Errorf("%s: %v, parent %s", s.Name(), synthetic, s.Parent().SpanID())
			}
			found[s.Name()] = fmt.Sprint(s.StartTime().Sub(origin), " ", s.EndTime().Sub(origin))
		}
	}
	// The first event came after 51 ms; the server says 5, 30 and 140 ms.
	for name, want := range map[string]string{"queue": "16ms 21ms", "prefill": "21ms 51ms", "decode": "51ms 191ms"} {
		if found[name] != want {
			t.Errorf("%s from and to %s, want %s", name, found[name], want)
		}
	}
	if e := newEntry(richRecord(), rulesOf(t, c)); len(x.spans) != e.spans || len(found) != 3 {
		t.Errorf("%d spans, %d were counted; %d phases", len(x.spans), e.spans, len(found))
	}
}

func TestEnginePhases(t *testing.T) {
	none := meter.Opt[float64]{}
	for name, c := range map[string]struct {
		change func(*meter.Record)
		want   string
	}{
		"not told":   {func(r *meter.Record) { r.ServerMetrics = nil }, "[]"},
		"no queue":   {func(r *meter.Record) { r.ServerMetrics.QueueTimeMS = none }, "[{prefill 21ms 30ms} {decode 51ms 140ms}]"},
		"no prefill": {func(r *meter.Record) { r.ServerMetrics.TimeToFirstTokenMS = none }, "[{queue 46ms 5ms} {decode 51ms 140ms}]"},
		"nonsense": {func(r *meter.Record) {
			r.ServerMetrics.QueueTimeMS.V = math.Inf(1)
			r.ServerMetrics.GenerationTimeMS.V = -1
		}, "[{prefill 21ms 30ms}]"},
		"longer than it is": {func(r *meter.Record) { r.FirstEvent.V = ms }, "[{queue -34ms 5ms} {prefill -29ms 30ms} {decode 1ms 140ms}]"},
		"no stream": {func(r *meter.Record) {
			r.Stream, r.FirstEvent, r.FirstByte = false, meter.Opt[time.Duration]{}, meter.Some(200*ms)
		}, "[{queue 25ms 5ms} {prefill 30ms 30ms} {decode 60ms 140ms}]"},
		"nothing came": {func(r *meter.Record) {
			r.FirstEvent, r.FirstByte = meter.Opt[time.Duration]{}, meter.Opt[time.Duration]{}
		}, "[]"},
	} {
		r := richRecord()
		c.change(r)
		got := []string{}
		for _, p := range enginePhases(r) {
			got = append(got, fmt.Sprintf("{%s %v %v}", p.name, p.start, p.took))
		}
		if got := fmt.Sprint(got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

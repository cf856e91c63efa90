package telemetry

import (
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestApply: what changes takes effect, on exchanges that end afterwards.
func TestApply(t *testing.T) {
	c := withHeaders()
	c.SLOs = []SLO{{Name: "old", Thresholds: Thresholds{TTFT: ms}, Target: .9}}
	x := &keepingExporter{}
	tel := open(t, c, x)
	play(tel, capturedRecord("search"))
	c.Trace.Detail, c.Trace.EngineSpans, c.Trace.ClientContext = "off", true, clientLink
	c.Trace.Keep.Always = []string{keepStalled}
	c.SLOs = []SLO{{Name: "new", Thresholds: Thresholds{TTFT: ms}, Target: .5}}
	c.HeaderAttributes = []HeaderAttribute{{Name: "team", MaxValues: 2}, {Name: "tier", MaxValues: 1}}
	if err := tel.Apply(c); err != nil {
		t.Fatal(err)
	}
	r := capturedRecord("ads")
	r.Captured = append(r.Captured, meter.Captured{Attribute: "tier", Value: "gold"})
	r.Trace = tel.Begin(meter.Begin{Operation: "chat", ClientTraceparent: clientSampled})
	tel.End(r)
	tel.End(capturedRecord("a third"))
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	if r.Trace.LinkTraceID == [16]byte{} || r.Trace.ParentID != [8]byte{} {
		t.Error("the client's context is not a link")
	}
	names := func(from int) (out []string) {
		for _, s := range x.spans[from:] {
			out = append(out, s.Name())
		}
		return out
	}
	if got, want := names(0)[:5], []string{"route", "chat llama", "route", "queue", "prefill"}; !slices.Equal(got, want) {
		t.Errorf("spans %v, want %v first", names(0), want)
	}
	if n := len(x.spans[1].Events()); n == 0 {
		t.Error("no events before the change")
	}
	if n := len(x.spans[6].Events()); n != 0 || x.spans[6].Name() != "chat llama" {
		t.Errorf("%d events after the change, on %s", n, x.spans[6].Name())
	}
	for line, want := range map[string]bool{
		`slo_name="old"} 0.9`: false, `slo_name="new"} 0.5`: true,
		`inferspan_slo_met="false",inferspan_slo_name="old"`: true, `inferspan_slo_met="false",inferspan_slo_name="new"`: true,
		`team="search"`: true, `team="ads"`: true, `team="a third"`: false, `tier="gold"`: true,
	} {
		if got := strings.Contains(page, line); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestApply_Invalid: nothing changes.
func TestApply_Invalid(t *testing.T) {
	c := quiet()
	tel := open(t, c, nil)
	before := tel.rules.Load()
	c.Models = []string{"never"}
	for _, change := range []func(*Config){
		func(c *Config) { c.Trace.Detail = "all" },
		func(c *Config) { c.HeaderAttributes = []HeaderAttribute{{}} },
	} {
		faulty := c
		change(&faulty)
		if err := tel.Apply(faulty); err == nil || tel.rules.Load() != before || tel.labels.models.known("never") {
			t.Errorf("error %v, and something changed", err)
		}
	}
	shut(t, tel)
}

package processor

import (
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestCapture: the headers that are asked for are in the record, by whatever
// way it came to be, and no others.
func TestCapture(t *testing.T) {
	want := []meter.Captured{{Attribute: "team", Value: "search"}, {Attribute: "tenant", Value: strings.Repeat("t", maxCaptured)}}
	head := append(chatHead(), "X-Team", "search", "x-team", "second", "x-tenant", strings.Repeat("t", 5000), "x-other", "o", "x-empty", "")
	tune := func(c *Config) {
		c.Capture = []Capture{{"x-team", "team"}, {"X-Tenant", "tenant"}, {"x-absent", "absent"}, {"x-empty", "empty"}}
	}
	for _, mode := range []bodyMode{streamed, buffered, duplex} {
		b := newBench(t, tune)
		e := b.inline(mode, streamed)
		play(t, e, mode, streamed, shape{head: head, request: []string{`{"model":"m"}`}, response: []string{"{}"}})
		e.hangUp()
		if got := b.one().Captured; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
	b := newBench(t, tune)
	e := b.observed()
	e.send(requestHeaders(true, head...))
	e.arrived()
	e.send(responseHeaders(true, ":status", "200"))
	e.ended()
	if got := b.one().Captured; !slices.Equal(got, want) {
		t.Errorf("observed: %v, want %v", got, want)
	}
}

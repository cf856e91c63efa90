package processor

import "testing"

// TestDecisionsAreTold: once for each decision, whatever the body mode, also
// where another stream makes the record; never where we only look on.
func TestDecisionsAreTold(t *testing.T) {
	s := shape{request: []string{`{"model":"m"}`}, response: []string{"{}"}}
	for _, mode := range []bodyMode{none, streamed, buffered, partial, duplex} {
		for _, response := range []bodyMode{none, streamed} {
			b := newBench(t)
			e := b.inline(mode, response)
			play(t, e, mode, response, s)
			e.hangUp()
			b.drained()
			if got := b.telemetry.routed; len(got) != 1 || got[0].Pool != testPool {
				t.Errorf("%s, %s: told of %+v, want one", mode, response, got)
			}
		}
	}
	b := newBench(t)
	e := b.observed()
	e.send(requestHeaders(false, chatHead()...))
	e.arrived()
	e.hangUp()
	b.drained()
	if got := b.telemetry.routed; len(got) != 0 {
		t.Errorf("observed: told of %+v", got)
	}
}

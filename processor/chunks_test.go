package processor

import (
	"testing"
	"time"
)

// TestNothingPerChunk: whatever a stream's length, telemetry is told of its
// milestones and its end, and a chunk in its midst allocates nothing.
func TestNothingPerChunk(t *testing.T) {
	told := func(chunks int) (calls int, allocs float64) {
		s, tel := newTestService()
		x := newExchange(s, discard{}, caller{})
		at := epoch
		deliver(t, x, at, message{phase: "request_headers", end: true, headers: chatHead()})
		deliver(t, x, at, message{phase: "response_headers", headers: streamHead})
		frame := message{phase: "response_body", body: token}.wire()
		chunk := func() {
			at = at.Add(12 * time.Millisecond)
			if _, err := x.handle(frame, at); err != nil {
				t.Fatal(err)
			}
		}
		for range chunks {
			chunk()
		}
		allocs = testing.AllocsPerRun(100, chunk)
		deliver(t, x, at, message{phase: "response_body", end: true, body: "data: [DONE]\n\n"})
		return len(tel.begins) + len(tel.routed) + len(tel.firsts) + len(tel.records) + len(tel.counts), allocs
	}
	few, _ := told(10)
	many, allocs := told(5000)
	if few != many || allocs != 0 {
		t.Errorf("telemetry is called %d times for few chunks and %d for many; %v allocations a chunk, want none", few, many, allocs)
	}
}

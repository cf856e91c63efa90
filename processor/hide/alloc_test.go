package hide_test

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/hide"
)

// A stream under way allocates nothing, whole events or cut ones.
func TestWriteDoesNotAllocate(t *testing.T) {
	event := []byte(events(chunk))
	h := hide.New(dialect.Chat, both, 0)
	out := make([]byte, 0, 4<<10)
	if n := testing.AllocsPerRun(100, func() {
		out = h.Write(out[:0], event)
		out = h.Write(out, event[:50])
		out = h.Write(out, event[50:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkWrite edits one chunk.
func BenchmarkWrite(b *testing.B) {
	stream, d := body(b, "chat-continuous-usage")
	h := hide.New(d, both, 0)
	frame := []byte(stream)
	out := make([]byte, 0, len(frame))
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		out = h.Write(out[:0], frame)
	}
}

package sse_test

import (
	"testing"

	"github.com/inferspan/inferspan/processor/sse"
)

// FuzzParser compares the Parser with the reference: for the stream whole, and
// cut at places that the second argument gives, one byte a cut.
func FuzzParser(f *testing.F) {
	for _, s := range []string{
		chunk, "\xEF\xBB\xBFdata: 1\r\n\r\n: c\n\n", "event: e\ndata:1\rdata: 2\r\r", "data: 123456789\n\ndata: 1\n\n",
		"data\ndata\n\n", "id: 1\nretry: 2\ndat", "data: [DONE]",
	} {
		f.Add([]byte(s), []byte{1, 0, 3, 255}, uint16(12))
		f.Add([]byte(s), []byte{}, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, stream, places []byte, maxEvent uint16) {
		limit := max(1, int(maxEvent))
		want := reference(limit, stream)
		if got := parse(limit, stream); got.String() != want.String() {
			t.Fatalf("whole, maximum %d:\n got %s\nwant %s", limit, got, want)
		}
		var pieces [][]byte
		rest := stream
		for _, n := range places {
			k := min(int(n), len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		pieces = append(pieces, rest)
		if got := parse(limit, pieces...); got.String() != want.String() {
			t.Fatalf("cut by %v, maximum %d:\n got %s\nwant %s", places, limit, got, want)
		}
		if held := heldAtMost(limit, pieces); held > 2*limit+sse.Slack {
			t.Fatalf("%d bytes are held, maximum %d", held, limit)
		}
	})
}

// heldAtMost returns the most bytes that a Parser holds between two pieces.
func heldAtMost(maxEvent int, pieces [][]byte) (most int) {
	p := sse.New(maxEvent)
	for _, piece := range pieces {
		drain(p, [][]byte{piece})
		most = max(most, p.Held())
	}
	return most
}

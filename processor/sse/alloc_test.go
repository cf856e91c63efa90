package sse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/sse"
)

const chunk = `data: {"id":"chatcmpl-9bdda988dc631d9b","object":"chat.completion.chunk","created":1796034903,` +
	`"model":"tiny","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,` +
	`"finish_reason":null,"token_ids":null}]}` + "\n\n"

// drain pushes the pieces and takes what they give.
func drain(p *sse.Parser, pieces [][]byte) (n int) {
	for _, piece := range pieces {
		p.Push(piece)
		for _, ok := p.Next(); ok; _, ok = p.Next() {
			n++
		}
	}
	return n
}

func shapes() map[string][][]byte {
	b := []byte(chunk)
	return map[string][][]byte{
		"one event a frame":   {b},
		"three events":        {[]byte(chunk + chunk + chunk)},
		"event in two frames": {b[:100], b[100:]},
		"blank line apart":    {b[:len(b)-1], b[len(b)-1:]},
		"bytes":               cuts(b)["bytes"],
		"two data lines":      {[]byte("event: e\ndata: 1\n"), []byte("data: 2\n\n")},
		"keep-alives":         {[]byte(": keep-alive\n\n")},
	}
}

// One run after a warm-up allocates nothing; not parallel, as the count is the
// process's.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for name, pieces := range shapes() {
		p := sse.New(0)
		drain(p, pieces)
		if n := testing.AllocsPerRun(100, func() { drain(p, pieces) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkParser(b *testing.B) {
	for _, name := range []string{"one event a frame", "event in two frames", "bytes"} {
		pieces := shapes()[name]
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			p := sse.New(0)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				drain(p, pieces)
			}
		})
	}
	// A frame full of CR line ends must not be searched again for each line.
	for _, end := range []string{"\n", "\r", "\r\n"} {
		frame := [][]byte{[]byte(strings.Repeat("data: 1"+end+end, 8000))}
		b.Run(fmt.Sprintf("8000_events_ending_in_%q", end), func(b *testing.B) {
			p := sse.New(0)
			b.SetBytes(int64(len(frame[0])))
			for b.Loop() {
				drain(p, frame)
			}
		})
	}
}

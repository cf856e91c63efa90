package meter

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// vllmChunk is a content chunk as vLLM 0.32 sends it.
const vllmChunk = `{"id":"chatcmpl-bc552a20c0f54b35","object":"chat.completion.chunk","created":1796033984,"model":"tiny","choices":[{"index":0,"delta":{"content":" variables"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`

// steady returns a stream of chat in its middle, and a frame with its next chunk.
func steady(choices int) (*Meter, [][]byte) {
	x := exchange{}
	for i := range 26 {
		x.options.GapBounds = append(x.options.GapBounds, time.Millisecond<<i/2)
	}
	m := x.meter()
	m.Ask(dialect.Request{Dialect: dialect.Chat, Model: "tiny", HasModel: true, Stream: true})
	m.Headers(0, 200, "text/event-stream; charset=utf-8", "")
	frames := make([][]byte, choices)
	for i := range frames {
		m.Observe(time.Millisecond, []byte("data: "+role(i)+"\n\n"))
		frames[i] = []byte("data: " + fmt.Sprintf(`{"id":"chatcmpl-bc552a20c0f54b35","object":"chat.completion.chunk","created":1796033984,"model":"tiny","choices":[{"index":%d,"delta":{"content":" variables"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`, i) + "\n\n")
	}
	for n := range 2000 {
		m.Observe(time.Duration(n+1)*10*time.Millisecond, frames[n%choices])
	}
	return m, frames
}

// A chunk in the middle of a stream allocates nothing, whole or cut.
func TestObserveAllocatesNothing(t *testing.T) {
	m, frames := steady(1)
	at := 20 * time.Second
	whole := testing.AllocsPerRun(1000, func() {
		at += 10 * time.Millisecond
		m.Observe(at, frames[0])
	})
	same(t, "allocations a chunk", whole, 0)
	cut := testing.AllocsPerRun(1000, func() {
		at += 10 * time.Millisecond
		m.Observe(at, frames[0][:50])
		m.Observe(at, frames[0][50:])
	})
	same(t, "allocations a chunk in two frames", cut, 0)
	m.check(t)
}

// A live stream takes no more than 16 KiB, however many tokens it has, with up
// to 8 choices.
func TestMemoryOfAStream(t *testing.T) {
	const streams, most = 64, 16 << 10
	for _, choices := range []int{1, 8} {
		live := make([]*Meter, streams)
		before := heap()
		for i := range live {
			live[i], _ = steady(choices)
		}
		each := (heap() - before) / streams
		t.Logf("%d choices: %d bytes a stream", choices, each)
		if each > most {
			t.Errorf("%d choices: %d bytes a stream, at most %d", choices, each, most)
		}
		runtime.KeepAlive(live)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // pools let go of what they hold in the second
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// BenchmarkChatChunk is the cost of one chunk in steady state, from bytes to
// state; BenchmarkJSONValid is what it is measured against.
func BenchmarkChatChunk(b *testing.B) {
	m, _ := steady(1)
	frame := []byte("data: " + vllmChunk + "\n\n")
	at := 20 * time.Second
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		at += 10 * time.Millisecond
		m.Observe(at, frame)
	}
}

// BenchmarkUsageChunk is the same with continuous usage, which changes with
// every chunk.
func BenchmarkUsageChunk(b *testing.B) {
	m, _ := steady(1)
	frames := make([][]byte, 100)
	for i := range frames {
		frames[i] = fmt.Appendf(nil, "data: %s,\"usage\":{\"prompt_tokens\":20,\"total_tokens\":%d,\"completion_tokens\":%d,\"completion_tokens_details\":{\"reasoning_tokens\":0}}}\n\n", vllmChunk[:len(vllmChunk)-1], 120+i, 100+i)
	}
	at := 20 * time.Second
	b.SetBytes(int64(len(frames[0])))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		at += 10 * time.Millisecond
		m.Observe(at, frames[n%len(frames)])
	}
}

func BenchmarkJSONValid(b *testing.B) {
	data := []byte(vllmChunk)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !json.Valid(data) {
			b.Fatal("not valid")
		}
	}
}

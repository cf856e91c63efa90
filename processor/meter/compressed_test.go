package meter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/inferspan/inferspan/processor/dialect"
)

// zipper is a server that compresses a stream and flushes when it likes to.
type zipper struct {
	buf bytes.Buffer
	w   *gzip.Writer
}

func newZipper() *zipper {
	z := new(zipper)
	z.w = gzip.NewWriter(&z.buf)
	return z
}

// frame returns what goes out for this text, flushed.
func (z *zipper) frame(text string) []byte {
	_, _ = io.WriteString(z.w, text)
	_ = z.w.Flush()
	return z.take()
}

// end returns what goes out last.
func (z *zipper) end(text string) []byte {
	_, _ = io.WriteString(z.w, text)
	_ = z.w.Close()
	return z.take()
}

func (z *zipper) take() []byte {
	defer z.buf.Reset()
	return bytes.Clone(z.buf.Bytes())
}

// zip returns the frames, compressed, each flushed; whole, with their end.
func zip(whole bool, frames ...frame) []frame {
	z := newZipper()
	out := make([]frame, len(frames))
	for i, f := range frames {
		send := z.frame
		if whole && i == len(frames)-1 {
			send = z.end
		}
		out[i] = raw(f.at, string(send(f.body)))
	}
	return out
}

// TestCompressed: what each way for a compressed body to end makes of it.
func TestCompressed(t *testing.T) {
	begun, more := at(1, role(0), chunk(0, text("a"))), at(2, chunk(0, text("b")))
	ended := at(3, chunk(0, nothing, stop), done)
	f := func(name string, want Outcome, events, skipped int64, x exchange) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			if x.encoding == "" {
				x.encoding = "gzip"
			}
			r := play(t, x)
			same(t, "outcome", r.Outcome, want)
			same(t, "events", r.Events, events)
			same(t, "skipped", r.Skipped, skipped)
		})
	}
	f("whole", OK, 5, 0, exchange{frames: zip(true, begun, more, ended)})
	f("without the end of its coding", OK, 5, 0, exchange{frames: zip(false, begun, more, ended)})
	f("broken off, as if whole", Truncated, 3, 0, exchange{frames: zip(false, begun, more)})
	f("whole, without a mark", Truncated, 3, 0, exchange{frames: zip(true, begun, more)})
	f("broken off by the server", UpstreamReset, 3, 0, exchange{cause: CauseUpstream, frames: zip(false, begun, more)})
	f("broken off in its head", Unparsed, 0, 1, exchange{frames: []frame{raw(1, "\x1f\x8b")}})
	f("of no event", Empty, 0, 0, exchange{frames: zip(true, raw(1, ""))})
	f("of nothing", Empty, 0, 0, exchange{})
	f("of keep-alives", Empty, 0, 0, exchange{frames: zip(true, raw(1, ": ping\n\n"))})
	f("a tail that is an event", OK, 5, 0, exchange{frames: zip(true, begun, more, raw(3, strings.TrimSuffix(ended.body, "\n\n")))})
	garbage := raw(4, "garbage, and more of it than a header has")
	f("broken", Unparsed, 3, 1, exchange{frames: append(zip(true, begun, more), garbage, ended)})
	f("broken after its mark", OK, 5, 1, exchange{frames: append(zip(true, begun, more, ended), garbage, more)})
	f("broken in an event", Unparsed, 2, 1, exchange{frames: append(zip(true, begun, raw(2, "data: [DONE]")), garbage)})
	f("not what it says", Unparsed, 0, 1, exchange{frames: []frame{begun, more, ended}})
	f("unknown coding", Unparsed, 0, 1, exchange{encoding: "dcb", frames: []frame{begun, more, ended}})
	f("too many codings", Unparsed, 0, 1, exchange{encoding: "br, gzip, gzip", frames: []frame{begun}})
	f("of another content, on another path", OK, 0, 0, exchange{path: "/x", contentType: "image/png", encoding: "dcb", frames: []frame{begun}})
	f("an error", HTTPError, 0, 0, exchange{status: 500, contentType: "application/json", frames: zip(true, raw(1, anError))})
}

// TestCompressed_JSON: an answer of one body is read through its coding.
func TestCompressed_JSON(t *testing.T) {
	body := raw(1, `{"id":"c1","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`)
	r := play(t, exchange{contentType: "application/json", encoding: "gzip", frames: zip(true, body)})
	same(t, "outcome", r.Outcome, OK)
	tokens(t, r, 7, SourceUsage)
	r = play(t, exchange{contentType: "application/json", encoding: "gzip", frames: zip(false, raw(1, body.body[:90]))})
	same(t, "outcome of a part", r.Outcome, Unparsed)
}

// TestCompressed_HeldBack: an event that the server did not flush is read when
// the exchange ends, at the time of its frame.
func TestCompressed_HeldBack(t *testing.T) {
	z := newZipper()
	x := exchange{encoding: "gzip", cause: CauseClient, end: 900, frames: []frame{
		raw(10, string(z.frame(at(0, role(0)).body))),
		raw(20, string(z.end(at(0, chunk(0, text("a"))).body))),
	}}
	last := &x.frames[1]
	last.body = last.body[:len(last.body)-8] // of the trailer nothing came
	r := play(t, x)
	same(t, "events", r.Events, 2)
	same(t, "first token", r.FirstToken, ms(20))
}

// TestHeaders_Again: a later head replaces an earlier one with its coding.
func TestHeaders_Again(t *testing.T) {
	m := (&exchange{}).meter()
	m.Headers(1, 200, "text/event-stream", "gzip")
	m.Observe(2, newZipper().frame(at(0, role(0)).body))
	m.Headers(3, 200, "text/event-stream", "dcb")
	m.Headers(4, 200, "text/event-stream", "")
	m.Observe(5, []byte(at(0, role(0), done).body))
	r := m.Close(6, CauseEnd)
	same(t, "outcome", r.Outcome, OKNoFinish)
	same(t, "events", r.Events, 3)
}

// TestT4_Bomb: a small body that stands for a gigabyte costs no more than the
// limits, and is counted.
func TestT4_Bomb(t *testing.T) {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, 1)
	keepAlives := bytes.Repeat([]byte(":\n"), 1<<19)
	for range 1024 {
		_, _ = w.Write(keepAlives)
	}
	_ = w.Close()
	for name, x := range map[string]exchange{"stream": {}, "JSON": {contentType: "application/json"}} {
		x.encoding, x.frames = "br", []frame{raw(1, b.String())}
		before := allocated()
		r := play(t, x)
		same(t, name+": outcome", r.Outcome, Unparsed)
		same(t, name+": skipped", r.Skipped, 1)
		if grown := allocated() - before; grown > 16<<20 {
			t.Errorf("%s: %d bytes of a bomb of %d allocated", name, grown, b.Len())
		}
	}
}

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// zipped returns n frames of a stream of chat that is flushed with each chunk.
func zipped(n int) [][]byte {
	z := newZipper()
	frames := make([][]byte, n)
	for i := range frames {
		text := fmt.Sprintf(" word%d", i*7919%1000)
		frames[i] = z.frame("data: " + strings.Replace(vllmChunk, " variables", text, 1) + "\n\n")
	}
	return frames
}

// unzipping returns a meter that has taken these frames of a compressed stream.
func unzipping(frames [][]byte) *Meter {
	m := (&exchange{}).meter()
	m.Ask(dialect.Request{Dialect: dialect.Chat, Model: "tiny", HasModel: true, Stream: true})
	m.Headers(0, 200, "text/event-stream; charset=utf-8", "gzip")
	for i, f := range frames {
		m.Observe(time.Duration(i)*time.Millisecond, f)
	}
	return m
}

// TestT2_Flushes: the chunks of a compressed stream allocate nothing, after two
// thousand of them too.
func TestT2_Flushes(t *testing.T) {
	const before, runs = 2000, 1000
	frames := zipped(before + runs + 1)
	m := unzipping(frames[:before])
	n := before
	each := testing.AllocsPerRun(runs, func() {
		m.Observe(time.Duration(n)*time.Millisecond, frames[n])
		n++
	})
	same(t, "allocations a chunk", each, 0)
	same(t, "events", m.Close(time.Hour, CauseEnd).Events, before+runs+1)
}

// BenchmarkGzipChunk is the cost of one chunk of a stream that is compressed and
// flushed by chunk: about the 10th chunk, and about the 2,000th.
func BenchmarkGzipChunk(b *testing.B) {
	const span = 200
	for _, at := range []int{10, 2000} {
		b.Run(fmt.Sprint(at), func(b *testing.B) {
			frames := zipped(at - 1 + span)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += span {
				b.StopTimer()
				m := unzipping(frames[:at-1])
				b.StartTimer()
				for i := range min(span, b.N-n) {
					m.Observe(time.Duration(at+i)*time.Millisecond, frames[at-1+i])
				}
				b.StopTimer()
				m.Close(time.Hour, CauseAborted)
				b.StartTimer()
			}
		})
	}
}

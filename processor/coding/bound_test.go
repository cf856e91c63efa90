package coding

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// bomb returns a body that stands for 64 MiB of zeros.
func bomb(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	c := newCompressor(t, name, &b)
	zeros := make([]byte, 1<<20)
	const size = 64
	for range size {
		if _, err := c.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestT4_Bomb: a small body that stands for a large one is stopped at the same
// byte however it is cut, in memory that does not grow with it.
func TestT4_Bomb(t *testing.T) {
	for _, c := range codings {
		body := bomb(t, c.name)
		for _, header := range []string{c.header, c.header + ", gzip"} {
			if header != c.header {
				body = whole(t, "gzip", body)
			}
			for _, size := range []int{len(body), 997, 1} {
				t.Run(fmt.Sprint(header, "/", c.name, "/", size), func(t *testing.T) {
					d := must(t, header, Limits{})
					var out int64
					for cut := range pieces(body, size) {
						d.Push(cut)
						for p, ok := d.Next(); ok; p, ok = d.Next() {
							if len(p) > chunk {
								t.Fatalf("%d bytes at once", len(p))
							}
							out += int64(len(p))
						}
					}
					read := (d.work.given + quantum - 1) / quantum * quantum
					if want := max(grace, defaultMaxRatio*read); out != want || !errors.Is(d.Err(), ErrLimit) {
						t.Errorf("%d bytes of %d, want %d: %v", out, len(body), want, d.Err())
					}
				})
			}
		}
	}
}

// pieces yields b in pieces of size bytes.
func pieces(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// A list whose inner coding swallows what the outer one gives is stopped too.
func TestT4_Bomb_Swallowed(t *testing.T) {
	const skippable, size = "\x50\x2a\x4d\x18", 1 << 30
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, skippable+"\x00\x00\x00\x40")
	zeros := make([]byte, 1<<20)
	for range 16 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	d := must(t, "zstd, gzip", Limits{})
	if got := push(d, b.Bytes()); got != "" || !errors.Is(d.Err(), ErrLimit) {
		t.Errorf("%d bytes of %d: %v", len(got), size, d.Err())
	}
}

func TestMaxOutput(t *testing.T) {
	for _, c := range codings {
		d := must(t, c.header, Limits{MaxOutput: 10_000})
		if got := push(d, whole(t, c.name, noise(20_000))); len(got) != 10_000 || !errors.Is(d.Err(), ErrLimit) {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), d.Err())
		}
	}
}

// TestRatio_Stream: a stream that flushes its events is far from the limit,
// even one whose events are all the same.
func TestRatio_Stream(t *testing.T) {
	same := events(1)[0]
	for _, c := range codings {
		t.Run(c.name, func(t *testing.T) {
			const n = 40_000
			var b bytes.Buffer
			server := newCompressor(t, c.name, &b)
			d := must(t, c.header, Limits{MaxRatio: 50})
			out := 0
			for range n {
				_, _ = io.WriteString(server, same)
				_ = server.Flush()
				d.Push(b.Bytes())
				for p, ok := d.Next(); ok; p, ok = d.Next() {
					out += len(p)
				}
				b.Reset()
			}
			if out != n*len(same) || d.Err() != nil {
				t.Errorf("%d bytes, want %d: %v", out, n*len(same), d.Err())
			}
		})
	}
}

// TestMaxWindow: a body that asks for too much memory gets none.
func TestMaxWindow(t *testing.T) {
	text := noise(1 << 10)
	for bits := 10; bits <= 24; bits++ {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 4, LGWin: bits})
		_, _ = w.Write(text)
		_ = w.Close()
		checkWindow(t, "br", b.Bytes(), bits, text)

		b.Reset()
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<bits), zstd.WithSingleSegment(false))
		if err != nil {
			t.Fatal(err)
		}
		// Flushed, its header goes out before its size is known.
		_, _ = z.Write(text)
		_ = z.Flush()
		_ = z.Close()
		checkWindow(t, "zstd", b.Bytes(), bits, text)
	}
}

func checkWindow(t *testing.T, name string, body []byte, bits int, want []byte) {
	t.Helper()
	if got := push(must(t, name, Limits{MaxWindow: 1 << bits}), body); got != string(want) {
		t.Errorf("%s of %d bits: %d bytes", name, bits, len(got))
	}
	if bits == 10 {
		return // the least that can be allowed
	}
	d := must(t, name, Limits{MaxWindow: 1<<bits - 1})
	if got := push(d, body); got != "" || d.Err() == nil {
		t.Errorf("%s of %d bits, one byte too large: %d bytes, %v", name, bits, len(got), d.Err())
	}
}

// TestMemory: what the package says that a waiting decoder holds.
func TestMemory(t *testing.T) {
	const n = 50
	const kib = 1 << 10
	for name, most := range map[string]uint64{
		"gzip": 56 * kib, "zlib": 56 * kib, "bare deflate": 56 * kib,
		"br": (256 + 100) * kib, "zstd": (2048 + 500) * kib,
	} {
		t.Run(name, func(t *testing.T) {
			body := flushed(t, name, events(1000)...)
			var header string
			for _, c := range codings {
				if c.name == name {
					header = c.header
				}
			}
			list := make([]*Decoder, n)
			before := memory()
			for i := range list {
				list[i] = must(t, header, Limits{})
				for _, p := range body[:len(body)-1] {
					push(list[i], p)
				}
			}
			if got := (memory() - before) / n; got > most {
				t.Errorf("%d bytes, want at most %d", got, most)
			} else {
				t.Logf("%d bytes", got)
			}
			runtime.KeepAlive(list)
		})
	}
}

func memory() uint64 {
	// The second collection empties what the first put aside in pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestAllocations: in steady state a frame costs no allocation, but with br the
// library's, of some bytes, for the contexts of each flushed block.
func TestAllocations(t *testing.T) {
	most := map[string]float64{"br": 3}
	for _, c := range codings {
		body := flushed(t, c.name, events(3000)...)
		d := must(t, c.header, Limits{})
		next := 0
		read := func() {
			d.Push(body[next])
			for _, ok := d.Next(); ok; _, ok = d.Next() {
			}
			next++
		}
		for range 1000 {
			read()
		}
		if got := testing.AllocsPerRun(1000, read); got > most[c.name] {
			t.Errorf("%s: %v allocations a frame, want at most %v", c.name, got, most[c.name])
		}
	}
}

// TestDropped: a Decoder that nobody closed does not keep its coroutine.
func TestDropped(t *testing.T) {
	before := runtime.NumGoroutine()
	const n = 20
	func() {
		for range n {
			d, err := New("gzip", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			push(d, []byte{0x1f})
		}
	}()
	if now := runtime.NumGoroutine(); now < before+n {
		t.Fatalf("%d goroutines, want %d more than %d", now, n, before)
	}
	for runtime.NumGoroutine() > before {
		// Cleanups run in their own time after a collection.
		runtime.GC()
		runtime.Gosched()
	}
}

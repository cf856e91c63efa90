package coding

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFlushed: each flushed piece comes out whole with its last byte, however
// it is cut.
func TestFlushed(t *testing.T) {
	want := events(50)
	for _, c := range codings {
		pieces := flushed(t, c.name, want...)
		t.Run(c.name+"/by piece", func(t *testing.T) {
			d := must(t, c.header, Limits{})
			for i, p := range pieces {
				equal(t, i, push(d, p), want[i])
			}
			atEnd(t, d)
		})
		t.Run(c.name+"/by byte", func(t *testing.T) {
			d := must(t, c.header, Limits{})
			for i, p := range pieces {
				var b strings.Builder
				for j := range p {
					b.WriteString(push(d, p[j:j+1]))
				}
				equal(t, i, b.String(), want[i])
			}
			atEnd(t, d)
		})
	}
}

func equal(t *testing.T, piece int, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("piece %d: %q, want %q", piece, got, want)
	}
}

// atEnd checks that the body was whole and nothing of it is left.
func atEnd(t *testing.T, d *Decoder) {
	t.Helper()
	d.End()
	if rest := drain(d); rest != "" || d.Err() != nil {
		t.Errorf("at the end: %q, %v", rest, d.Err())
	}
}

// TestNotFlushed: what a server never flushed is there at the end.
func TestNotFlushed(t *testing.T) {
	want := noise(200_000)
	for _, c := range codings {
		t.Run(c.name, func(t *testing.T) {
			d := must(t, c.header, Limits{})
			got := push(d, whole(t, c.name, want))
			d.End()
			if got += drain(d); got != string(want) || d.Err() != nil {
				t.Errorf("%d bytes, want %d: %v", len(got), len(want), d.Err())
			}
		})
	}
}

// noise returns bytes that compress to about half.
func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[random.IntN(16)]
	}
	return b
}

func TestLists(t *testing.T) {
	text := []byte(strings.Join(events(20), ""))
	inner := whole(t, "gzip", text)
	for header, body := range map[string][]byte{
		"gzip, br":             whole(t, "br", inner),
		" GZIP ,, Zstd ":       whole(t, "zstd", inner),
		"identity, gzip":       inner,
		"x-gzip, identity":     inner,
		"gzip,gzip":            whole(t, "gzip", inner),
		"gzip, deflate":        whole(t, "bare deflate", inner),
		"identity, , identity": text,
	} {
		d := must(t, header, Limits{})
		got := ""
		for i := range body {
			got += push(d, body[i:i+1])
		}
		d.End()
		if got += drain(d); got != string(text) || d.Err() != nil {
			t.Errorf("%q: %d bytes, want %d: %v", header, len(got), len(text), d.Err())
		}
	}
}

// A list is flushed piece by piece too.
func TestLists_Flushed(t *testing.T) {
	var inner, outer bytes.Buffer
	second := newCompressor(t, "br", &outer)
	first := newCompressor(t, "gzip", &inner)
	d := must(t, "gzip, br", Limits{})
	for i, e := range events(20) {
		_, _ = io.WriteString(first, e)
		_ = first.Flush()
		_, _ = inner.WriteTo(second)
		_ = second.Flush()
		equal(t, i, push(d, outer.Bytes()), e)
		outer.Reset()
	}
}

func TestNew_Unsupported(t *testing.T) {
	for _, header := range []string{"compress", "gzip, dcb", "snappy", "gzip, br, zstd", "gzip;q=1", strings.Repeat("x", 1<<16)} {
		d, err := New(header, Limits{})
		if d != nil || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%.40q: %v, %v", header, d, err)
		} else if len(err.Error()) > 100 {
			t.Errorf("%.40q: an error of %d bytes", header, len(err.Error()))
		}
	}
}

func TestIdentity(t *testing.T) {
	for header, want := range map[string]bool{
		"": true, "identity": true, " Identity , identity": true, ",": true,
		"gzip": false, "identity, gzip": false, "unknown": false,
	} {
		if got := Identity(header); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

// TestT3_EmptyBody: a body of no bytes is whole in every coding.
func TestT3_EmptyBody(t *testing.T) {
	for _, header := range []string{"gzip", "deflate", "br", "zstd", "gzip, br"} {
		d := must(t, header, Limits{})
		d.Push(nil)
		if got := drain(d); got != "" {
			t.Errorf("%s: %q", header, got)
		}
		atEnd(t, d)
	}
}

func TestMembers(t *testing.T) {
	for _, name := range []string{"gzip", "zstd"} {
		var body []byte
		want := events(5)
		for _, e := range want {
			body = append(body, whole(t, name, []byte(e))...)
		}
		d := must(t, name, Limits{})
		if got := push(d, body); got != strings.Join(want, "") {
			t.Errorf("%s: %q", name, got)
		}
		atEnd(t, d)
	}
}

// TestTruncated: of a body that breaks off, at any byte, what was flushed is
// there, and that it broke off is told.
func TestTruncated(t *testing.T) {
	want := events(4)
	for _, c := range codings {
		pieces := flushed(t, c.name, want...)
		body := bytes.Join(pieces, nil)
		for n := 1; n < len(body); n++ {
			d := must(t, c.header, Limits{})
			got := push(d, body[:n])
			flushed := ""
			for i, end := 0, 0; i < len(pieces)-1; i++ {
				if end += len(pieces[i]); end <= n {
					flushed += want[i]
				}
			}
			if !strings.HasPrefix(got, flushed) {
				t.Fatalf("%s at %d: %q, want at least %q", c.name, n, got, flushed)
			}
			d.End()
			got += drain(d)
			if !strings.HasPrefix(strings.Join(want, ""), got) || !errors.Is(d.Err(), io.ErrUnexpectedEOF) {
				t.Fatalf("%s at %d: %q, %v", c.name, n, got, d.Err())
			}
		}
	}
}

// TestCorrupted: after a fault nothing comes out, and what came before is right.
func TestCorrupted(t *testing.T) {
	want := strings.Join(events(4), "")
	for header, body := range map[string]string{
		"gzip":    "data: hello\n\n",
		"br":      "\x91garbage that is none",
		"zstd":    "data: hello\n\n",
		"deflate": "\xff\xff\xff\xff",
	} {
		d := must(t, header, Limits{})
		if got := push(d, []byte(body)); got != "" || d.Err() == nil || errors.Is(d.Err(), ErrLimit) {
			t.Errorf("%s: %q, %v", header, got, d.Err())
		}
		if got := push(d, []byte(body)); got != "" {
			t.Errorf("%s: %q after a fault", header, got)
		}
	}
	for _, c := range codings {
		body := append(whole(t, c.name, []byte(want)), "more than a header has"...)
		d := must(t, c.header, Limits{})
		if got := push(d, body); got != want || d.Err() == nil {
			t.Errorf("%s: %q, %v", c.name, got, d.Err())
		}
	}
}

// TestClose: closing frees the coroutine at every stage of a body, and ends
// what the Decoder says.
func TestClose(t *testing.T) {
	for _, c := range codings {
		body := whole(t, c.name, noise(100_000))
		for _, n := range []int{0, 1, len(body) / 2, len(body)} {
			d := must(t, c.header, Limits{})
			d.Push(body[:n])
			d.Close()
			if p, ok := d.Next(); ok {
				t.Errorf("%s, closed unread: %q", c.name, p)
			}

			d = must(t, c.header, Limits{})
			d.Push(body[:n])
			d.Next()
			d.Close()
			d.Close()
			d.Push(body[n:])
			d.End()
			if p, ok := d.Next(); ok || d.Err() != nil {
				t.Errorf("%s, closed at %d: %q, %v", c.name, n, p, d.Err())
			}
		}
	}
}

// faulty is a library's decoder with a fault.
type faulty struct{}

func (faulty) begin(*inlet, Limits) (io.Reader, error) { panic("index out of range") }
func (faulty) end()                                    {}

// TestPanic: a fault of a library ends the decoding of that body and no more.
func TestPanic(t *testing.T) {
	body := whole(t, "gzip", []byte("text"))
	for pools[kindGzip].Get() != nil {
		// The next stage is to be the faulty one, if the pool keeps it: it need not.
	}
	for hit := false; !hit; {
		pools[kindGzip].Put(&stage{kind: kindGzip, decoder: faulty{}})
		d := must(t, "gzip", Limits{})
		got := push(d, body)
		hit = d.Err() != nil
		if hit && (got != "" || !strings.Contains(d.Err().Error(), "index out of range")) {
			t.Errorf("%q, %v", got, d.Err())
		}
	}
	d := must(t, "gzip", Limits{})
	if got := push(d, body); got != "text" || d.Err() != nil {
		t.Errorf("afterwards: %q, %v", got, d.Err())
	}
}

// A body that needs a dictionary can't be read.
func TestDictionary(t *testing.T) {
	var b bytes.Buffer
	w, err := zlib.NewWriterLevelDict(&b, zlib.BestSpeed, []byte("data: "))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "data: x")
	_ = w.Close()
	d := must(t, "deflate", Limits{})
	if got := push(d, b.Bytes()); got != "" || !errors.Is(d.Err(), zlib.ErrDictionary) {
		t.Errorf("%q, %v", got, d.Err())
	}
}

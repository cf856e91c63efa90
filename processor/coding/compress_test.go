package coding

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// compressor is a server's end of a coding.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// codingsOf are the codings under test: what stands in content-encoding, by a
// name of the way it is made.
var codings = []struct{ name, header string }{
	{"gzip", "gzip"},
	{"zlib", "deflate"},
	{"bare deflate", "deflate"},
	{"br", "br"},
	{"zstd", "zstd"},
}

// zstdWindow is what zstd's own library asks for at its usual level, 3.
const zstdWindow = 2 << 20

func newCompressor(t testing.TB, name string, w io.Writer) compressor {
	t.Helper()
	var c compressor
	var err error
	switch name {
	case "gzip":
		c = gzip.NewWriter(w)
	case "zlib":
		c = zlib.NewWriter(w)
	case "bare deflate":
		c, err = flate.NewWriter(w, flate.DefaultCompression)
	case "br":
		c = brotli.NewWriterLevel(w, 4)
	case "zstd":
		c, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow))
	default:
		err = fmt.Errorf("no coding %q", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flushed returns the pieces, each flushed, and with the last of them the end.
func flushed(t testing.TB, name string, pieces ...string) [][]byte {
	t.Helper()
	var b bytes.Buffer
	c := newCompressor(t, name, &b)
	var out [][]byte
	take := func() {
		out = append(out, bytes.Clone(b.Bytes()))
		b.Reset()
	}
	for i, p := range pieces {
		if i > 0 {
			take()
		}
		if _, err := io.WriteString(c, p); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	take()
	return out
}

// whole returns data as one body that was never flushed.
func whole(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	c := newCompressor(t, name, &b)
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// must returns a new Decoder, closed with the test.
func must(t testing.TB, header string, l Limits) *Decoder {
	t.Helper()
	d, err := New(header, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// drain returns what can be decoded.
func drain(d *Decoder) string {
	var b strings.Builder
	for p, ok := d.Next(); ok; p, ok = d.Next() {
		b.Write(p)
	}
	return b.String()
}

// push returns what p brings.
func push(d *Decoder, p []byte) string {
	d.Push(p)
	return drain(d)
}

// events returns n events of a stream, about as a server sends them.
func events(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`data: {"id":"chatcmpl-9d0f3c5a","object":"chat.completion.chunk","created":1790000000,"model":"m",`+
			`"choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", i*7919%1000)
	}
	return out
}

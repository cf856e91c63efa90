package coding

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// FuzzDecode: any bytes in any coding are decoded without a panic, within the
// limits, and to the same however they are cut: after every piece as much, at
// the end the same fault. Only of a broken br body more may come in pieces.
func FuzzDecode(f *testing.F) {
	const list = uint8(len(headers))
	for i, c := range codings {
		body := bytes.Join(flushed(f, c.name, events(5)...), nil)
		f.Add(body, uint8(i), uint16(7))
		f.Add(body[:len(body)/2], uint8(i), uint16(1))
		f.Add(whole(f, c.name, make([]byte, 100_000)), uint8(i), uint16(3))
	}
	f.Add(whole(f, "br", whole(f, "gzip", []byte("x"))), list-1, uint16(2))
	f.Fuzz(func(t *testing.T, body []byte, coding uint8, size uint16) {
		header := headers[coding%list]
		l := Limits{MaxOutput: 1 << 20, MaxRatio: 2, MaxWindow: 1 << 20}
		whole := decode(t, header, l, body, len(body)+1)
		cut := decode(t, header, l, body, int(size)+1)
		if whole.fault == broken && strings.Contains(header, "br") {
			// The library does not give out what it had decoded of the piece with
			// the fault.
			if cut.fault != broken && cut.fault != "limit" || !bytes.HasPrefix(cut.plain, whole.plain) {
				t.Fatalf("%s in pieces of %d: %s, not the rest of what comes of the whole", header, size+1, cut.fault)
			}
			return
		}
		if !bytes.Equal(whole.plain, cut.plain) || whole.fault != cut.fault {
			t.Fatalf("%s in pieces of %d: %d bytes, %s; whole: %d bytes, %s",
				header, size+1, len(cut.plain), cut.fault, len(whole.plain), whole.fault)
		}
		// What has come out after some bytes is what these bytes bring at once.
		at := min(int(size), len(body))
		if first := decode(t, header, l, body[:at], at+1); at > 0 && !bytes.Equal(first.early, cutAt(t, header, l, body, at)) {
			t.Fatalf("%s: up to byte %d it depends on what follows", header, at)
		}
	})
}

// headers are the codings of the fuzz test, those of codings first.
var headers = [...]string{"gzip", "deflate", "deflate", "br", "zstd", "gzip, br"}

const broken = "broken"

type decoded struct {
	plain []byte
	early []byte // before the end was told
	fault string
}

func decode(t *testing.T, header string, l Limits, body []byte, size int) decoded {
	t.Helper()
	d := must(t, header, l)
	defer d.Close()
	var out decoded
	for p := range pieces(body, size) {
		out.plain = append(out.plain, push(d, p)...)
	}
	out.early = bytes.Clone(out.plain)
	d.End()
	out.plain = append(out.plain, drain(d)...)
	if int64(len(out.plain)) > l.MaxOutput {
		t.Fatalf("%d bytes, limit %d", len(out.plain), l.MaxOutput)
	}
	switch err := d.Err(); {
	case err == nil:
		out.fault = "none"
	case errors.Is(err, ErrLimit):
		out.fault = "limit"
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.fault = "truncated"
	default:
		out.fault = broken
	}
	return out
}

// cutAt returns what the first n bytes of body bring, pushed byte by byte.
func cutAt(t *testing.T, header string, l Limits, body []byte, n int) []byte {
	t.Helper()
	d := must(t, header, l)
	defer d.Close()
	var out []byte
	for p := range pieces(body[:n], 1) {
		out = append(out, push(d, p)...)
	}
	return out
}

package processor

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/andybalholm/brotli"
)

// TestT1_AcceptEncoding: compression is prevented on the way up where that was
// asked for and the client's wishes allow it, once, and else nothing is set.
func TestT1_AcceptEncoding(t *testing.T) {
	for _, mode := range modes {
		for _, prevent := range []bool{true, false} {
			b := newBench(t, func(c *Config) { c.PreventCompression = prevent })
			e := b.inline(mode, streamed)
			got := play(t, e, mode, streamed, shape{
				head:    append(chatHead(), "accept-encoding", "gzip", "Accept-Encoding", "br"),
				request: []string{`{"model":"m"}`}, response: []string{"{}"},
			})
			e.hangUp()
			want := ""
			if prevent {
				want = identity
			}
			if got.set[acceptEncoding] != want {
				t.Errorf("%s, prevent %v: accept-encoding is set to %q", mode, prevent, got.set[acceptEncoding])
			}
			b.one()
		}
	}
}

func TestTakesCoding(t *testing.T) {
	for list, want := range map[string]bool{
		"": false, "identity": false, " , ": false, "gzip;q=0": false, "identity;q=0.5": false,
		"gzip": true, "gzip, deflate, br, zstd": true, "*": true, "gzip;q=0.5, identity": true,
		"br;q=1.0, *;q=0.1": true, "identity;q=1, *;q=0, gzip": true, "gzip;level=0": true, "gzip;q=x": true,
		"gzip, identity;q=0": false, "gzip, *;q=0": false, "gzip;q=0, br; Q = 0.000": false,
	} {
		if got := takesCoding(list); got != want {
			t.Errorf("%q: %v", list, got)
		}
	}
}

// TestT1_CodingsInSeveralHeaders: they are one list, and the record is that of
// what the body stands for.
func TestT1_CodingsInSeveralHeaders(t *testing.T) {
	var inner, outer bytes.Buffer
	first := gzip.NewWriter(&inner)
	_, _ = first.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	_ = first.Close()
	second := brotli.NewWriter(&outer)
	_, _ = second.Write(inner.Bytes())
	_ = second.Close()
	for _, mode := range []bodyMode{buffered, streamed, duplex} {
		b := newBench(t)
		e := b.inline(buffered, mode)
		got := play(t, e, buffered, mode, shape{
			request:      []string{`{"model":"m"}`},
			responseHead: []string{":status", "200", "content-type", "text/event-stream", "content-encoding", "gzip", "content-encoding", "br"},
			response:     []string{outer.String()},
		})
		e.hangUp()
		if got.downstream != outer.String() {
			t.Errorf("%s: the body passed as %d bytes, want the %d of it", mode, len(got.downstream), outer.Len())
		}
		r := b.one()
		if r.Events != 2 || !r.FirstToken.OK || r.Bytes != int64(outer.Len()) {
			t.Errorf("%s: %d events, first token %v, %d bytes", mode, r.Events, r.FirstToken, r.Bytes)
		}
	}
}

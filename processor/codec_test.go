package processor

import (
	"bytes"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/inferspan/inferspan/processor/wire"
)

// poisoning is a codec whose messages are overwritten as soon as their time is
// over: a test of the service then sees what was kept of them.
type poisoning struct{ codec }

func (p poisoning) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*wire.Message)
	if !ok {
		return p.codec.Unmarshal(data, v)
	}
	b := data.Materialize()
	if err := m.Unmarshal(b); err != nil {
		return err
	}
	m.Own(poison(b))
	return nil
}

type poison []byte

func (p poison) Free() {
	for i := range p {
		p[i] = '!'
	}
}

// buffersOf is b as gRPC hands it over, cut anywhere.
func buffersOf(b []byte, size int) mem.BufferSlice {
	var out mem.BufferSlice
	for len(b) > size {
		out = append(out, mem.SliceBuffer(b[:size]))
		b = b[size:]
	}
	return append(out, mem.SliceBuffer(b))
}

// freed counts how often it is freed.
type freed struct{ n int }

func (f *freed) Free() { f.n++ }

func TestCodecReadsMessages(t *testing.T) {
	body := strings.Repeat("prompt ", 10_000)
	b, err := proto.Marshal(requestBody(body, true))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{100, 16_384, len(b)} {
		var m wire.Message
		if err := newCodec().Unmarshal(buffersOf(b, size), &m); err != nil {
			t.Fatal(err)
		}
		if m.Phase != wire.RequestBody || !m.EndOfStream || string(m.Body) != body {
			t.Errorf("in pieces of %d: phase %s, %d bytes", size, m.Phase, len(m.Body))
		}
	}
	if err := newCodec().Unmarshal(buffersOf([]byte{0xFF}, 1), &wire.Message{}); err == nil {
		t.Error("what is no message is read")
	}
}

// owned is a transport whose messages own what it says.
type owned struct {
	buffers []*freed
	next    int
}

func (o *owned) SendMsg(any) error { return nil }
func (o *owned) RecvMsg(m any) error {
	m.(*wire.Message).Own(o.buffers[o.next])
	o.next++
	return nil
}

// A message's memory is given back once, when the next one is waited for.
func TestMessageIsFreedOnce(t *testing.T) {
	o := &owned{buffers: []*freed{{}, {}, {}}}
	s, m := wire.NewStream(o), wire.Message{}
	for i := range o.buffers {
		if err := s.Recv(&m); err != nil {
			t.Fatal(err)
		}
		for k, f := range o.buffers {
			want := 0
			if k < i {
				want = 1
			}
			if f.n != want {
				t.Errorf("after message %d, number %d was freed %d times, want %d", i, k, f.n, want)
			}
		}
	}
}

func TestCodecWritesReplies(t *testing.T) {
	body := bytes.Repeat([]byte("answer "), 1000)
	for _, r := range []*wire.Reply{
		{Phase: wire.ResponseBody},
		{Phase: wire.RequestHeaders, Set: []wire.Header{{Name: "a", Value: "b"}}},
		{Phase: wire.ResponseBody, Streamed: true, EndOfStream: true, Body: append([]byte(nil), body...)},
	} {
		out, err := newCodec().Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		clear(r.Body) // is the sender's again
		var got extproc.ProcessingResponse
		if err := proto.Unmarshal(out.Materialize(), &got); err != nil {
			t.Fatal(err)
		}
		piece := got.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if r.Streamed && (!bytes.Equal(piece.GetBody(), body) || !piece.GetEndOfStream()) {
			t.Errorf("%d bytes arrive, end %t", len(piece.GetBody()), piece.GetEndOfStream())
		}
		if (got.GetRequestHeaders() != nil) != (r.Phase == wire.RequestHeaders) {
			t.Errorf("%s is answered by %v", r.Phase, &got)
		}
	}
	for _, p := range []wire.Phase{0, wire.ResponseTrailers + 1} {
		if _, err := newCodec().Marshal(&wire.Reply{Phase: p}); err == nil {
			t.Errorf("a reply to phase %d is written", p)
		}
	}
}

// Health checks and the access log share the server.
func TestCodecLeavesOthers(t *testing.T) {
	in := &grpc_health_v1.HealthCheckRequest{Service: "s"}
	b, err := newCodec().Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out grpc_health_v1.HealthCheckRequest
	if err := newCodec().Unmarshal(b, &out); err != nil || out.GetService() != "s" {
		t.Errorf("got %v, %v", &out, err)
	}
	if _, err := newCodec().Marshal("text"); err == nil {
		t.Error("what is no message is written")
	}
}

// The reply that changes nothing is one for all streams, and costs nothing.
func TestUnchangingReplyAllocatesNothing(t *testing.T) {
	c, r := newCodec(), &wire.Reply{Phase: wire.ResponseBody}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Marshal(r); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// A frame is read without an allocation: its body is where it came.
func TestFrameAllocatesNothing(t *testing.T) {
	b, err := proto.Marshal(responseBody(token, false))
	if err != nil {
		t.Fatal(err)
	}
	c, m, data := newCodec(), new(wire.Message), buffersOf(b, len(b))
	if n := testing.AllocsPerRun(100, func() {
		*m = wire.Message{}
		if err := c.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func TestBuffers(t *testing.T) {
	p := new(buffers)
	for _, n := range []int{0, 1, 1 << minBuffer, 1<<minBuffer + 1, 220_000, 1 << maxBuffer, 1<<maxBuffer + 1} {
		b := p.Get(n)
		if len(*b) != n || n <= 1<<maxBuffer && cap(*b) >= 2*max(n, 1<<minBuffer) {
			t.Errorf("of %d bytes: %d in %d", n, len(*b), cap(*b))
		}
		p.Put(b)
		if again := p.Get(n); len(*again) != n {
			t.Errorf("of %d bytes, again: %d", n, len(*again))
		}
	}
	odd := make([]byte, 3000)
	p.Put(&odd) // would be too short for who gets it
	if b := p.Get(4096); len(*b) != 4096 {
		t.Errorf("got %d bytes, want 4096", len(*b))
	}
}

// A reply that is longer than usual is whole, and so is the next one.
func TestCodecWritesLongReplies(t *testing.T) {
	for _, n := range []int{1, 100, 1} {
		r := &wire.Reply{Phase: wire.RequestHeaders}
		for range n {
			r.Set = append(r.Set, wire.Header{Name: "x-name", Value: strings.Repeat("v", 100)})
		}
		out, err := newCodec().Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got extproc.ProcessingResponse
		if err := proto.Unmarshal(out.Materialize(), &got); err != nil {
			t.Fatal(err)
		}
		out.Free()
		if set := got.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders(); len(set) != n {
			t.Errorf("%d headers arrive, want %d", len(set), n)
		}
	}
}

package processor

import (
	"testing"

	"github.com/inferspan/inferspan/processor/wire"
)

// discard is a sender that sends nothing.
type discard struct{}

func (discard) Send(*wire.Reply) error { return nil }

// BenchmarkResponseFrame is what one frame of a stream costs between receiving
// and replying, and in the measuring that follows.
func BenchmarkResponseFrame(b *testing.B) {
	s, _ := newTestService()
	x := newExchange(s, discard{}, caller{})
	for _, m := range []message{
		{phase: "request_headers", end: true, headers: chatHead()},
		{phase: "response_headers", headers: streamHead},
	} {
		if _, err := x.handle(m.wire(), epoch); err != nil {
			b.Fatal(err)
		}
	}
	m := message{phase: "response_body", body: token}.wire()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.handle(m, epoch); err != nil {
			b.Fatal(err)
		}
	}
	x.closed(epoch)
}

// BenchmarkRequest is what one routed request of 1 KB costs, record included.
func BenchmarkRequest(b *testing.B) {
	s, _ := newTestService()
	ask := message{phase: "request_body", end: true, body: `{"model":"m","messages":[{"role":"user","content":"` + string(make([]byte, 900)) + `"}]}`}.wire()
	head, answer := message{phase: "request_headers", headers: chatHead()}.wire(), message{phase: "response_headers", headers: streamHead, end: true}.wire()
	b.ReportAllocs()
	for b.Loop() {
		x := newExchange(s, discard{}, caller{})
		for _, m := range []*wire.Message{head, ask, answer} {
			if _, err := x.handle(m, epoch); err != nil {
				b.Fatal(err)
			}
		}
	}
}

package processor

import (
	"bytes"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/restore"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
)

// FuzzLoop sends any sequence of messages in any modes: nothing panics, each
// message gets what it is owed and no more, no byte is lost or added where they
// go through us, and there is one record at most.
func FuzzLoop(f *testing.F) {
	const (
		rh, rb, rt = 0, 1, 2
		sh, sb, st = 3, 4, 5
		end        = 0x08
	)
	body := []byte(`{"model":"alias","stream":true}`)
	f.Add(uint8(1), uint8(3), false, []byte{rh, rb | end, sh, sb, sb | end}, body, []byte(token))
	f.Add(uint8(4), uint8(4), false, []byte{rh, rb, rb | end, sh, sb, st}, body, []byte(finished))
	f.Add(uint8(4), uint8(3), false, []byte{rh, rb, rb, rt, sh | end}, []byte("no JSON"), []byte{})
	f.Add(uint8(3), uint8(3), true, []byte{rh | end, sh, sb, sb | end}, body, []byte(token))
	f.Add(uint8(0), uint8(0), false, []byte{sh, sb | end, rh, rb | end, rb | end, 6, 7}, body, body)
	f.Add(uint8(4), uint8(4), false, []byte{rh, rb | 0xf0 | end, sh, sb | 0xf0, sb | 0x10, sb | 0xf0 | end}, body, []byte(token+finished))
	f.Add(uint8(4), uint8(13), false, []byte{rh, rb | 0x30, rb | 0x30, rb | end, sh, sb | end}, []byte(`{"x":"aaaaaaaaaaaaaaaaaaaaaa`), []byte{})
	f.Add(uint8(4), uint8(3), false, []byte{rt, rh}, body, body)
	f.Add(uint8(4), uint8(3), false, []byte{rb, rh, rb | end}, body, body)
	f.Add(uint8(1), uint8(0), false, []byte{rh, rb | 0xf0 | end}, body, []byte{})
	f.Add(uint8(3), uint8(0), true, []byte{rh, sh, sb | 0xf0, sb | 0xf0 | end}, body, []byte(token+finished))
	whole := handover.Handover{
		Start: epoch, Asked: dialect.Request{Model: "m", HasModel: true, Echo: true, N: 2, MaxTokens: 7}, Usage: dialect.Asked{Continuous: true},
		Route: meter.Route{Pool: testPool, Endpoint: testEndpoint, Reason: route.ReasonModel}, Tokens: 5,
	}
	handed := [2]string{handover.Key(nil).Encode(&whole, ""), "1"}
	f.Fuzz(func(t *testing.T, request, response uint8, observe bool, script, requestBody, responseBody []byte) {
		s, tel := newTestService()
		s.cfg.HoldLimit, s.cfg.HoldTotal = 64, 90
		others := int64(response/5%3) * 40 // what other streams hold
		s.held.take(others, s.cfg.HoldTotal)
		out := &replies{}
		x := newExchange(s, out, caller{})
		o := &oracle{request: mode(request), response: mode(response), observe: observe}
		first := true
		for _, b := range script[:min(len(script), 200)] {
			m := message{observe: observe, end: b&0x08 != 0}
			if first && !observe {
				m.request, m.response = o.request, o.response
			}
			first = false
			w := m.wire()
			w.Phase = wire.Phase(b&0x07) + 1
			if w.Phase > wire.ResponseTrailers {
				w.Phase = 0
			}
			switch w.Phase {
			case wire.RequestHeaders:
				w.Headers = []wire.Header{{Name: ":path", Value: "/v1/chat/completions"}, {Name: handover.Header, Value: handed[response%2]}}
			case wire.ResponseHeaders:
				w.Headers = []wire.Header{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "text/event-stream"}}
			case wire.RequestBody:
				w.Body, requestBody = take(requestBody, int(b>>4)*3)
			case wire.ResponseBody:
				w.Body, responseBody = take(responseBody, int(b>>4)*9)
			}
			out.sent = out.sent[:0]
			over, err := x.handle(w, epoch)
			if err != nil {
				t.Fatal(err)
			}
			o.check(t, w, out.sent)
			if held := s.held.bytes.Load(); held != others+x.request.counted || x.request.counted < 0 || held > s.cfg.HoldTotal {
				t.Fatalf("%d bytes are held, %d of them here, %d elsewhere", held, x.request.counted, others)
			}
			if over {
				break
			}
		}
		x.closed(epoch)
		x.closed(epoch)
		x.dropHeld() // as the loop does
		if held := s.held.bytes.Load(); held != others {
			t.Errorf("%d bytes are held at the end, %d elsewhere", held, others)
		}
		o.finish(t)
		if n := len(tel.recorded()); n > 1 {
			t.Errorf("got %d records", n)
		}
		if tel.count(countPanic) != 0 {
			t.Error("something panicked")
		}
		if u := s.cfg.Router.(*fakeRouter).unbalanced(); u != "" {
			t.Errorf("in flight at the end: %s", u)
		}
		if l := s.Live(); len(l) != 0 {
			t.Errorf("live at the end: %+v", l)
		}
	})
}

func mode(b uint8) wire.BodyMode { return wire.BodyMode(b%5) + wire.ModeNone }

func take(b []byte, n int) (head, tail []byte) {
	n = min(n, len(b))
	return b[:n], b[n:]
}

// oracle knows what each message is owed.
type oracle struct {
	request, response wire.BodyMode
	observe           bool
	up, down          direction
	heldReply         bool // the reply to the request's headers is owed
	asked, answered   bool // something of the request, of the response came
	rejected          bool
}

// direction is a FULL_DUPLEX_STREAMED body, as it came and as it was sent back.
type direction struct {
	in, out        []byte
	ended, endSent bool // it came, it was sent
}

func (o *oracle) check(t *testing.T, m *wire.Message, sent []wire.Reply) {
	t.Helper()
	if o.observe || m.Phase == 0 {
		if len(sent) != 0 {
			t.Fatalf("%d replies to what is owed none", len(sent))
		}
		return
	}
	for i, r := range sent {
		switch {
		case r.Immediate != nil:
			o.rejected = true
			if i != len(sent)-1 {
				t.Fatal("a reply follows our own answer")
			}
		case r.Streamed && r.Phase == wire.RequestBody:
			o.up.sent(t, r)
		case r.Streamed && r.Phase == wire.ResponseBody:
			o.down.sent(t, r)
		case r.Streamed:
			t.Fatalf("a piece of a body answers %s", r.Phase)
		}
	}
	duplex := m.Phase == wire.RequestBody && o.request == wire.ModeFullDuplex ||
		m.Phase == wire.ResponseBody && o.response == wire.ModeFullDuplex
	if o.request == wire.ModeFullDuplex && m.Phase <= wire.RequestTrailers {
		o.duplexRequest(t, m, sent)
	} else if !duplex {
		if len(sent) != 1 || sent[0].Phase != m.Phase || sent[0].Streamed {
			t.Fatalf("the replies to %s are %+v", m.Phase, sent)
		}
	}
	switch m.Phase {
	case wire.ResponseBody:
		if duplex {
			o.down.came(m)
		}
	case wire.ResponseHeaders:
		if !o.answered && m.EndOfStream {
			o.down.over()
		}
		o.answered = true
	case wire.ResponseTrailers:
		o.down.over()
	}
}

// over is the end of a direction elsewhere than on its body.
func (d *direction) over() {
	if !d.ended {
		d.ended, d.endSent = true, true
	}
}

// duplexRequest checks the direction in which the reply to the headers may wait.
func (o *oracle) duplexRequest(t *testing.T, m *wire.Message, sent []wire.Reply) {
	t.Helper()
	if o.rejected {
		return
	}
	heads, trailers := 0, 0
	for i, r := range sent {
		switch r.Phase {
		case wire.RequestHeaders:
			heads++
			if i != 0 {
				t.Fatal("the reply to the headers is not the first")
			}
		case wire.RequestTrailers:
			trailers++
			if i != len(sent)-1 {
				t.Fatal("the reply to the trailers is not the last")
			}
		case wire.RequestBody:
			if o.heldReply && heads == 0 {
				t.Fatal("a piece of the body overtook the headers")
			}
		default:
			t.Fatalf("%s is answered by %s", m.Phase, r.Phase)
		}
	}
	switch m.Phase {
	case wire.RequestHeaders:
		again := o.asked
		if (again || m.EndOfStream) != (heads == 1) {
			t.Fatalf("%d replies to the headers", heads)
		}
		o.heldReply = o.heldReply || !again && !m.EndOfStream
		if !again && m.EndOfStream {
			o.up.over()
		}
	case wire.RequestTrailers:
		if trailers != 1 {
			t.Fatalf("%d replies to the trailers", trailers)
		}
		o.up.over()
	case wire.RequestBody:
		o.up.came(m)
	}
	o.asked = true
	if heads == 1 {
		o.heldReply = false
	}
}

func (d *direction) came(m *wire.Message) {
	if !d.ended {
		d.in = append(d.in, m.Body...)
		d.ended = m.EndOfStream
	}
}

func (d *direction) sent(t *testing.T, r wire.Reply) {
	t.Helper()
	if d.endSent {
		t.Fatal("a piece follows the end of its body")
	}
	d.out = append(d.out, r.Body...)
	d.endSent = r.EndOfStream
}

// oneModel tells whether out is in with each of its top-level models, other than
// those that are no name, under the same name.
func oneModel(in, out []byte) bool {
	s := dialect.NewScanner(dialect.Chat, "")
	s.Write(out)
	want, _ := dialect.Rewrite(dialect.Chat, in, dialect.Edit{Model: s.Request().Model, SetModel: true})
	return bytes.Equal(out, want)
}

// restored is what the client of alias gets of a response so far.
func (d *direction) restored() []byte {
	e := restore.New(dialect.Chat, "alias", true)
	out := e.Write(nil, d.in)
	if d.ended {
		out = e.Close(out)
	}
	return out
}

// finish checks what passed, once nothing more comes.
func (o *oracle) finish(t *testing.T) {
	t.Helper()
	if !o.rejected && o.up.ended {
		if !o.up.endSent || !bytes.Equal(o.up.in, o.up.out) && !oneModel(o.up.in, o.up.out) {
			t.Errorf("the request %q passed as %q", o.up.in, o.up.out)
		}
	}
	passed := bytes.HasPrefix(o.down.in, o.down.out) && (len(o.down.in) == len(o.down.out) || o.rejected)
	if !passed && !bytes.Equal(o.down.out, o.down.restored()) || o.down.ended != o.down.endSent {
		t.Errorf("the response %q passed as %q", o.down.in, o.down.out)
	}
}

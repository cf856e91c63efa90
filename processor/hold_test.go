package processor

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// holding is a request in FULL_DUPLEX_STREAMED.
func holding(t *testing.T, s *Service, answer wire.BodyMode) (*exchange, *replies) {
	t.Helper()
	out := &replies{}
	x := newExchange(s, out, caller{})
	deliver(t, x, epoch, message{phase: "request_headers", headers: chatHead(), request: wire.ModeFullDuplex, response: answer})
	return x, out
}

func piece(text string, end bool) message {
	return message{phase: "request_body", body: text, end: end}
}

// unnamed begins a body of which n bytes name no model.
func unnamed(n int) string { return `{"x":"` + strings.Repeat("a", n-6) }

// All requests together hold so much and no more. One that would hold more is
// refused, the others go on.
func TestHoldTotal(t *testing.T) {
	s, tel := newTestService()
	s.cfg.HoldLimit, s.cfg.HoldTotal = 1000, 1500
	first, firstOut := holding(t, s, wire.ModeStreamed)
	second, secondOut := holding(t, s, wire.ModeStreamed)
	deliver(t, first, epoch, piece(unnamed(1000), false))
	deliver(t, second, epoch, piece(unnamed(400), false))
	deliver(t, second, epoch, piece(strings.Repeat("a", 100), false))
	if n := s.held.bytes.Load(); n != 1500 || len(firstOut.sent)+len(secondOut.sent) != 0 {
		t.Fatalf("%d bytes are held, with replies %+v and %+v", n, firstOut.sent, secondOut.sent)
	}
	over, err := second.handle(piece("a", false).wire(), epoch)
	if err != nil || !over || len(secondOut.sent) != 1 || secondOut.sent[0].Immediate == nil {
		t.Fatalf("over %t, %v, the replies are %+v", over, err, secondOut.sent)
	}
	i := secondOut.sent[0].Immediate
	if i.Status != 503 || i.Details != "inferspan_overloaded" || !strings.Contains(string(i.Body), `"code":503`) {
		t.Errorf("got %d, %s, %s", i.Status, i.Details, i.Body)
	}
	second.dropHeld()
	if n := s.held.bytes.Load(); n != 1000 {
		t.Errorf("%d bytes are held, want those of the first request", n)
	}
	if rs := tel.recorded(); len(rs) != 1 || rs[0].Outcome != meter.Rejected || rs[0].Status != 503 || rs[0].Route.Reason != "overloaded" {
		t.Errorf("the records are %+v", rs)
	}
	deliver(t, first, epoch, piece(`","model":"alias"}`, true))
	if n := s.held.bytes.Load(); n != 0 || len(firstOut.sent) != 2 || !strings.HasSuffix(string(firstOut.sent[1].Body), `"real-name"}`) {
		t.Errorf("%d bytes are held, the replies are %+v", n, firstOut.sent)
	}
	first.closed(epoch)
	s.Drain(t.Context())
}

// Over gRPC the refusal is that of every other: in OpenAI form, with a retry-after.
func TestOverloadedIsToldToTheClient(t *testing.T) {
	b := newBench(t, func(c *Config) { c.HoldTotal = 10_000 })
	e := b.inline(duplex, streamed)
	got := play(t, e, duplex, streamed, shape{request: []string{unnamed(10_001), `","model":"alias"}`}})
	checkRejection(t, got, 503, "overloaded")
	if r := b.one(); r.Outcome != meter.Rejected || r.Status != 503 {
		t.Errorf("the record is %s, %d", r.Outcome, r.Status)
	}
}

// Where there is no room, what can be decided on is: what is whole, what waits for
// its prompt's beginning only, and what waits for the hand-over only. What is too
// large by itself is the client's fault all the same.
func TestNoRoomToHold(t *testing.T) {
	for name, c := range map[string]struct {
		answer   wire.BodyMode
		byPrefix bool
		pieces   []message
		status   int // 0: it passes
	}{
		"whole":              {answer: wire.ModeStreamed, pieces: []message{piece(`{"model":"m"}`, true)}},
		"whole and unnamed":  {answer: wire.ModeStreamed, pieces: []message{piece(unnamed(900)+`"}`, true)}},
		"the model is there": {answer: wire.ModeStreamed, pieces: []message{piece(`{"model":"m","x":"`, false)}},
		"by prefix":          {answer: wire.ModeStreamed, byPrefix: true, pieces: []message{piece(`{"model":"m","x":"`, false)}},
		"hand-over":          {answer: wire.ModeNone, pieces: []message{piece(`{"model":"m","x":"`, false)}},
		"nothing came":       {answer: wire.ModeStreamed, pieces: []message{piece("", false), piece(`{"model":"m"}`, true)}},
		"without a model":    {answer: wire.ModeStreamed, pieces: []message{piece(unnamed(900), false)}, status: 503},
		"a part of it":       {answer: wire.ModeNone, pieces: []message{piece(`{"mod`, false)}, status: 503},
		"too large":          {answer: wire.ModeStreamed, pieces: []message{piece(unnamed(1001), false)}, status: 413},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestService()
			s.cfg.HoldLimit, s.cfg.HoldTotal = 1000, 1000
			s.cfg.Router.(*fakeRouter).byPrefix = c.byPrefix
			s.held.take(1000, 1000) // other streams
			x, out := holding(t, s, c.answer)
			var body strings.Builder
			for _, m := range c.pieces {
				deliver(t, x, epoch, m)
				body.WriteString(m.body)
			}
			status, passed := 0, ""
			for _, r := range out.sent {
				passed += string(r.Body)
				if r.Immediate != nil {
					status = r.Immediate.Status
				}
			}
			if status != c.status || status == 0 && passed != body.String() {
				t.Errorf("the status is %d, want %d; %q passed", status, c.status, passed)
			}
			x.closed(epoch)
			x.dropHeld()
			s.Drain(t.Context())
			if n := s.held.bytes.Load(); n != 1000 {
				t.Errorf("%d bytes are held, want those of the others", n)
			}
		})
	}
}

// bodyPanics panics once an exchange has taken a body for its request.
type bodyPanics struct{ Telemetry }

func (b bodyPanics) Overhead(phase string, d time.Duration) {
	if phase == wire.RequestBody.String() {
		panic("injected")
	}
	b.Telemetry.Overhead(phase, d)
}

// Whatever way a stream ends, what it held is held no more.
func TestHeldIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(p *pipe){
		"it is decided on":  func(p *pipe) { p.send(requestBody(`","model":"m"`, false)) },
		"it has trailers":   func(p *pipe) { p.send(requestTrailers()) },
		"it is too large":   func(p *pipe) { p.send(requestBody(strings.Repeat("a", 1000), false)) },
		"there is no room":  func(p *pipe) { p.send(requestBody(strings.Repeat("a", 700), false)) },
		"Envoy half-closes": func(p *pipe) { close(p.in) },
		"Envoy resets":      func(p *pipe) { p.cancel() },
		"nothing comes":     func(*pipe) { <-time.After(time.Minute) },
		"the response is first": func(p *pipe) {
			p.send(responseHeaders(true, streamHead...))
			p.send(requestBody("a", false))
			p.cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newScriptedService()
				s.cfg.HoldLimit, s.cfg.HoldTotal = 1000, 1000
				s.held.take(100, 1000) // another stream
				p := serve(s)
				p.send(config(requestHeaders(false, chatHead()...), duplex, streamed))
				p.send(requestBody(unnamed(300), false))
				synctest.Wait()
				if n := s.held.bytes.Load(); n != 400 {
					t.Errorf("%d bytes are held, want 400", n)
				}
				end(p)
				synctest.Wait()
				if n := s.held.bytes.Load(); n != 100 {
					t.Errorf("%d bytes are held at the end, want the other stream's 100", n)
				}
				p.cancel()
				t.Logf("the stream ended with %v", <-p.result)
				s.Drain(t.Context())
			})
		})
	}
	t.Run("it panics", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, tel := newScriptedService()
			s.cfg.Telemetry = bodyPanics{tel}
			p := serve(s)
			p.send(config(requestHeaders(false, chatHead()...), duplex, streamed))
			p.send(requestBody(unnamed(300), false))
			if err := <-p.result; err == nil || tel.count(countPanic) != 1 {
				t.Errorf("the stream ended with %v, %d panics", err, tel.count(countPanic))
			}
			if n := s.held.bytes.Load(); n != 0 {
				t.Errorf("%d bytes are held", n)
			}
			s.Drain(t.Context())
		})
	})
}

// However many take and give at once, the total is never beyond its limit.
func TestHeldTotalConcurrentSafe(t *testing.T) {
	var h heldTotal
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if h.take(40, 100) {
					if n := h.bytes.Load(); n < 40 || n > 100 {
						t.Errorf("%d bytes are held", n)
					}
					h.give(40)
				}
			}
		})
	}
	wg.Wait()
	if n := h.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}

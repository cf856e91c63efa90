package processor

import (
	"strings"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

const token = `data: {"id":"r1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\n"

const finished = `data: {"id":"r1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}]}` + "\n\n"

// asked plays the request of an inline stream, BUFFERED.
func asked(e *envoy) {
	e.send(requestHeaders(false, chatHead()...))
	e.recv()
	e.send(requestBody(`{"model":"m","stream":true,"messages":[]}`, true))
	e.recv()
}

// answered plays the response's headers and frames.
func answered(e *envoy, frames ...string) {
	e.send(responseHeaders(false, streamHead...))
	e.recv()
	for _, f := range frames {
		e.send(responseBody(f, false))
		e.recv()
	}
}

// A message of no phase is no exchange, however its stream ends, and takes nothing
// from one that follows.
func TestNoPhaseNoExchange(t *testing.T) {
	for name, end := range map[string]func(*envoy){
		"hangs up": (*envoy).hangUp, "closes": (*envoy).closeSend,
	} {
		for _, open := range []func(*bench) *envoy{
			func(b *bench) *envoy { return b.inline(buffered, streamed) },
			func(b *bench) *envoy { return b.inline(duplex, none) },
			(*bench).observed,
		} {
			b := newBench(t)
			e := open(b)
			e.send(&extproc.ProcessingRequest{})
			next := b.inline(buffered, streamed)
			asked(next)
			if live := b.service.Live(); len(live) != 1 || live[0].Labels.Operation != "chat" {
				t.Errorf("%s: live are %+v, want the one exchange", name, live)
			}
			end(e)
			next.hangUp()
			b.one()
		}
	}
	b := newBench(t)
	e := b.inline(buffered, streamed)
	e.send(&extproc.ProcessingRequest{})
	asked(e)
	answered(e, finished)
	e.send(responseBody("data: [DONE]\n\n", true))
	e.recv()
	e.hangUp()
	if r := b.one(); r.Outcome != meter.OK || b.telemetry.count(countSpurious) != 1 {
		t.Errorf("the record is %s, %d messages had no phase", r.Outcome, b.telemetry.count(countSpurious))
	}
}

// Every way out of an exchange makes one record, and the right one.
func TestEveryWayOut(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(b *bench) *envoy // leaves the stream open
		end  func(e *envoy)        // nil: hangUp
		want meter.Outcome
	}{
		{
			name: "end of stream on the last frame",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				answered(e, token, finished)
				e.send(responseBody("data: [DONE]\n\n", true))
				e.recv()
				return e
			},
			want: meter.OK,
		},
		{
			name: "end of stream on an empty frame",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				answered(e, token, finished, "data: [DONE]\n\n")
				e.send(responseBody("", true))
				e.recv()
				return e
			},
			want: meter.OK,
		},
		{
			name: "end of stream on the headers",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				e.send(responseHeaders(true, ":status", "204"))
				e.recv()
				return e
			},
			want: meter.Unparsed,
		},
		{
			name: "end of stream on trailers",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				answered(e, token, finished)
				e.send(responseTrailers())
				e.recv()
				return e
			},
			want: meter.OK,
		},
		{
			name: "no end of stream after the end mark",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				answered(e, token, finished, "data: [DONE]\n\n")
				return e
			},
			want: meter.OK,
		},
		{
			name: "broken off in the stream",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				answered(e, token)
				return e
			},
			end:  (*envoy).closeSend,
			want: meter.Aborted,
		},
		{
			name: "broken off before the response",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				return e
			},
			end:  (*envoy).closeSend,
			want: meter.Aborted,
		},
		{
			name: "broken off before the body",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				e.send(requestHeaders(false, chatHead()...))
				e.recv()
				return e
			},
			want: meter.Aborted,
		},
		{
			name: "split, broken off before the request was handed on",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, none)
				e.send(requestHeaders(false, chatHead()...))
				e.recv()
				return e
			},
			end:  (*envoy).closeSend,
			want: meter.Aborted,
		},
		{
			name: "an error of the server's",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				asked(e)
				e.send(responseHeaders(false, ":status", "503", "content-type", "application/json"))
				e.recv()
				e.send(responseBody(`{"error":{"message":"busy","type":"Service Unavailable","code":503}}`, true))
				e.recv()
				return e
			},
			want: meter.HTTPError,
		},
		{
			name: "a local reply",
			play: func(b *bench) *envoy {
				e := b.inline(buffered, streamed)
				e.send(responseHeaders(false, ":status", "413", "content-type", "text/plain"))
				e.recv()
				e.send(responseBody("Payload Too Large", true))
				e.recv()
				return e
			},
			want: meter.HTTPError,
		},
		{
			name: "observed and broken off",
			play: func(b *bench) *envoy {
				e := b.observed()
				e.send(requestHeaders(true, chatHead()...))
				e.arrived()
				e.send(responseHeaders(false, streamHead...))
				e.send(responseBody(token, false))
				return e
			},
			end:  (*envoy).closeSend,
			want: meter.Aborted,
		},
		{
			name: "rejected",
			play: func(b *bench) *envoy {
				b.router.decideBy = refuse
				e := b.inline(buffered, streamed)
				asked(e)
				e.ended()
				return e
			},
			want: meter.Rejected,
		},
		{
			name: "split and rejected",
			play: func(b *bench) *envoy {
				b.router.decideBy = refuse
				e := b.inline(buffered, none)
				asked(e)
				e.ended()
				return e
			},
			want: meter.Rejected,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e := c.play(b)
			if c.end == nil {
				c.end = (*envoy).hangUp
			}
			c.end(e)
			r := b.one()
			if r.Outcome != c.want {
				t.Errorf("the outcome is %s, want %s", r.Outcome, c.want)
			}
			if r.Trace.SpanID == [8]byte{} || len(b.telemetry.begins) != 1 {
				t.Errorf("ids were made %d times", len(b.telemetry.begins))
			}
		})
	}
}

func refuse(route.Request) route.Decision {
	return route.Decision{Pool: testPool, Policy: "least-load", Reason: route.ReasonNoEndpoint, Reject: &route.Rejection{
		Status: 503, Reason: route.ReasonNoEndpoint, Message: "none", Type: "Service Unavailable",
	}}
}

// What another stream of ours accounts for makes no record here.
func TestNoRecord(t *testing.T) {
	for name, play := range map[string]func(b *bench) *envoy{
		"split, reset before the request was handed on": func(b *bench) *envoy {
			e := b.inline(buffered, none)
			e.send(requestHeaders(false, chatHead()...))
			e.recv()
			return e
		},
		"split, handed on": func(b *bench) *envoy {
			e := b.inline(buffered, none)
			asked(e)
			return e
		},
		"our own rejection, observed": func(b *bench) *envoy {
			e := b.observed()
			e.send(requestHeaders(true, chatHead()...))
			e.arrived()
			e.send(attributes(responseHeaders(false, ":status", "503"), map[string]any{"response.code_details": "inferspan_no_endpoint"}))
			e.send(responseBody("{}", true))
			e.ended()
			return e
		},
		"nothing came": func(b *bench) *envoy { return b.open() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			play(b).hangUp()
			b.drained()
			if n := len(b.telemetry.recorded()); n != 0 {
				t.Errorf("got %d records", n)
			}
		})
	}
}

// What comes after the end is answered where an answer is owed, and changes
// nothing.
func TestAfterTheEnd(t *testing.T) {
	t.Run("BUFFERED and STREAMED", func(t *testing.T) {
		b := newBench(t)
		e := b.inline(buffered, streamed)
		asked(e)
		answered(e)
		e.send(responseBody("data: [DONE]\n\n", true))
		e.recv()
		for _, m := range []*extproc.ProcessingRequest{
			requestBody("more", true), responseBody("more", true), responseTrailers(), requestTrailers(),
			responseHeaders(true, ":status", "200"), requestHeaders(true),
		} {
			e.send(m)
			if r := e.recv(); r == nil || r.GetImmediateResponse() != nil {
				t.Fatalf("got %v, want a reply that changes nothing", r)
			}
		}
		e.hangUp()
		if r := b.one(); r.Bytes != int64(len("data: [DONE]\n\n")) {
			t.Errorf("got %d bytes", r.Bytes)
		}
	})
	t.Run("FULL_DUPLEX_STREAMED", func(t *testing.T) {
		b := newBench(t)
		e := b.inline(duplex, duplex)
		play(t, e, duplex, duplex, shape{request: []string{`{"model":"m"}`}, response: []string{"data: [DONE]\n\n"}})
		e.send(requestBody(`{"model":"m"}`, true))
		e.send(responseBody("more", true))
		// A reply to trailers shows that nothing was sent for the two.
		e.send(responseTrailers())
		if r := e.recv(); r.GetResponseTrailers() == nil {
			t.Errorf("got %v, want the reply to trailers", r)
		}
		e.hangUp()
		b.one()
		if n := b.telemetry.count(countAfterEnd); n != 3 {
			t.Errorf("%d messages were counted as after the end, want 3", n)
		}
	})
}

// In observe mode an unclean close comes late by Envoy's deferred close.
func TestDeferredClose(t *testing.T) {
	for name, c := range map[string]struct {
		last, closed, want time.Duration
	}{
		"silent at the end":    {last: 2 * time.Second, closed: 10 * time.Second, want: 9 * time.Second},
		"closed earlier":       {last: 2 * time.Second, closed: 2500 * time.Millisecond, want: 2 * time.Second},
		"not before the last":  {last: 3 * time.Second, closed: 4 * time.Second, want: 3 * time.Second},
		"nothing but the head": {last: 0, closed: 6 * time.Second, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, tel := newTestService()
			x := newExchange(s, &replies{}, caller{})
			deliver(t, x, epoch, message{phase: "request_headers", observe: true, end: true, headers: chatHead()})
			if c.last > 0 {
				deliver(t, x, epoch.Add(c.last), message{phase: "response_headers", observe: true, headers: streamHead})
			}
			x.closed(epoch.Add(c.closed))
			if got := tel.recorded()[0].End; got != c.want {
				t.Errorf("the end is %v, want %v", got, c.want)
			}
		})
	}
}

func TestTimesAreOffsetsFromTheOrigin(t *testing.T) {
	s, tel := newTestService()
	x := newExchange(s, &replies{}, caller{peer: "envoy"})
	deliver(t, x, epoch, message{
		phase: "request_headers", end: true, headers: chatHead(),
		requestTime: epoch.Add(-4 * time.Millisecond).Format(time.RFC3339Nano),
	})
	deliver(t, x, epoch.Add(96*time.Millisecond), message{phase: "response_headers", headers: streamHead})
	deliver(t, x, epoch.Add(100*time.Millisecond), message{phase: "response_body", body: token})
	deliver(t, x, epoch.Add(200*time.Millisecond), message{phase: "response_body", body: finished, end: true})
	r := tel.recorded()[0]
	if !r.Start.Equal(epoch.Add(-4*time.Millisecond)) || r.StartSource != meter.StartEnvoy {
		t.Errorf("the start is %v by %s", r.Start, r.StartSource)
	}
	if r.Headers.V != 100*time.Millisecond || r.FirstToken.V != 104*time.Millisecond || r.End != 204*time.Millisecond {
		t.Errorf("headers %v, first token %v, end %v", r.Headers.V, r.FirstToken.V, r.End)
	}
	var all meter.Milestone
	for _, m := range tel.firsts {
		all |= m
	}
	if all&meter.ReachedFirstToken == 0 {
		t.Errorf("milestones are %v", tel.firsts)
	}
}

func TestLiveUntilTheEndMark(t *testing.T) {
	b := newBench(t)
	e := b.inline(buffered, streamed)
	asked(e)
	live := b.service.Live()
	if len(live) != 1 || live[0].Labels.Model != "m" || live[0].Labels.Pool != testPool || live[0].Labels.Operation != "chat" || live[0].Stream {
		t.Errorf("live is %+v", live)
	}
	answered(e, token)
	// The reply to a message says that the one before it was measured.
	e.send(responseBody("", false))
	e.recv()
	if live = b.service.Live(); len(live) != 1 || !live[0].Stream || live[0].Labels.Status != 200 {
		t.Fatalf("live is %+v", live)
	}
	if l := live[0]; l.Tokens != 1 || l.LastToken.Before(l.Start) {
		t.Errorf("%d tokens, the last at %v, begun at %v; want one", l.Tokens, l.LastToken, l.Start)
	}
	e.send(responseBody(finished+"data: [DONE]\n\n", false))
	e.recv()
	e.send(responseBody("", false))
	e.recv()
	if live = b.service.Live(); len(live) != 0 {
		t.Errorf("live is %+v after the end mark", live)
	}
	e.hangUp()
	b.one()
}

func TestPathHasNoQuery(t *testing.T) {
	b := newBench(t)
	e := b.inline(buffered, streamed)
	asked(e)
	e.hangUp()
	if r := b.one(); strings.Contains(r.Path, "secret") || r.RequestID != "req-1" {
		t.Errorf("path %q, request id %q", r.Path, r.RequestID)
	}
}

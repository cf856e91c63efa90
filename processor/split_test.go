package processor

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	data "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// splitRequest asks for all that a record shows of a request.
const splitRequest = `{"messages":[{"role":"assistant","content":"secret words"}],"model":"m","stream":true,` +
	`"stream_options":{"include_usage":true},"n":2,"max_tokens":7,"echo":true,"add_generation_prompt":false}`

var splitFrames = []string{token, finished, "data: [DONE]\n\n"}

// decides has e decide on the request, and returns the headers as they go on.
func decides(t *testing.T, e *envoy, mode bodyMode, body string) []string {
	t.Helper()
	p := newPlayer(t, e)
	p.request(mode, shape{request: []string{body}})
	if p.seen.immediate != nil {
		t.Fatalf("rejected: %v", p.seen.immediate)
	}
	if p.seen.upstream != body {
		t.Errorf("%d bytes go on, want the %d that came", len(p.seen.upstream), len(body))
	}
	head := chatHead()
	for name, value := range p.seen.set {
		head = append(head, name, value)
	}
	return head
}

// observes has e see an exchange with these headers.
func observes(e *envoy, head []string, frames ...string) {
	e.send(requestHeaders(false, head...))
	e.arrived()
	e.send(attributes(responseHeaders(false, streamHead...), map[string]any{
		"upstream.address": testEndpoint, "upstream.request_attempt_count": 1,
	}))
	for _, f := range frames {
		e.send(responseBody(f, false))
	}
	e.send(responseBody("", true))
	e.ended()
}

// timeless is r without what differs from one exchange to the next.
func timeless(r *meter.Record) meter.Record {
	c := *r
	c.Start, c.End, c.Headers = time.Time{}, 0, meter.Opt[time.Duration]{}
	for _, at := range []*meter.Opt[time.Duration]{&c.FirstByte, &c.FirstEvent, &c.Role, &c.FirstToken, &c.FirstAnswer, &c.LastToken, &c.LongestGap} {
		at.V = 0
	}
	c.Route.Start, c.Route.Duration = 0, 0
	c.ITL, c.Gap, c.TPOT, c.Marks, c.Timeline = meter.Gaps{}, meter.Gaps{}, nil, nil, meter.Timeline{}
	return c
}

// The observing stream makes the record that one filter alone would have made,
// whichever replica decided.
func TestSplit(t *testing.T) {
	for _, key := range []handover.Key{nil, handover.Key("a key of 16 bytes")} {
		signed := func(c *Config) { c.HandoverKey = key }
		alone := newBench(t)
		one := alone.inline(buffered, streamed)
		play(t, one, buffered, streamed, shape{request: []string{splitRequest}, response: append(slices.Clone(splitFrames), "")})
		one.hangUp()
		want := timeless(alone.one())
		want.Route.Served, want.Route.Attempts = testEndpoint, 1
		for _, mode := range []bodyMode{buffered, partial, duplex} {
			deciding, observing := newBench(t, signed), newBench(t, signed)
			d := deciding.inline(mode, none)
			head := decides(t, d, mode, splitRequest)
			i := slices.Index(head, handover.Header)
			if i < 0 || strings.Contains(head[i+1], "secret") || len(head[i+1]) > handover.MaxLen {
				t.Fatalf("%s: the hand-over is %v", mode, head)
			}
			observes(observing.observed(), head, splitFrames...)
			d.hangUp()
			if diff := cmp.Diff(want, timeless(observing.one())); diff != "" {
				t.Errorf("%s (-one filter +two):\n%s", mode, diff)
			}
			deciding.drained()
			if n := len(deciding.telemetry.recorded()); n != 0 {
				t.Errorf("%s: the deciding side made %d records", mode, n)
			}
			if n, m := len(deciding.telemetry.routed), len(observing.telemetry.routed); n != 1 || m != 0 {
				t.Errorf("%s: %d and %d decisions were told of, want 1 and 0", mode, n, m)
			}
			if n, m := len(deciding.telemetry.begins), len(observing.telemetry.begins); n != 1 || m != 0 {
				t.Errorf("%s: ids were made %d and %d times, want 1 and 0", mode, n, m)
			}
			span := want.Trace.SpanID
			if got := deciding.router.expected; len(got) != 1 || got[span].Endpoint != testEndpoint || deciding.router.begins != 0 {
				t.Errorf("%s: the deciding side expects %v, and counts %d", mode, got, deciding.router.begins)
			}
			if got := observing.router.arrived; len(got) != 1 || got[0] != span || observing.router.begins != 1 {
				t.Errorf("%s: arrived at the observing side: %v, and it counts %d", mode, got, observing.router.begins)
			}
			if len(observing.telemetry.counts) != 0 {
				t.Errorf("%s: counted %v", mode, observing.telemetry.counts)
			}
		}
	}
}

// A hand-over that can't be used leaves a record of what is seen.
func TestHandoverUnusable(t *testing.T) {
	key := handover.Key("a key of 16 bytes")
	h := handover.Handover{Asked: dialect.Request{Model: "m", HasModel: true}, Route: meter.Route{Pool: "forged", Reason: "model"}}
	value := key.Encode(&h, "req-1")
	for counted, values := range map[string][]string{
		countNoHandover:       nil,
		countHandoverUnsigned: {handover.Key(nil).Encode(&h, "req-1")},
		countHandoverForged:   {key.Encode(&h, "req-2")},
		countHandoverVersion:  {"2" + value[1:]},
		countHandoverBroken:   {value[:len(value)/2] + "!", value},
	} {
		k := key
		if counted == countHandoverBroken {
			k = nil // else its signature is looked at first
		}
		b := newBench(t, func(c *Config) { c.HandoverKey = k })
		head := chatHead()
		for _, v := range values {
			head = append(head, handover.Header, v)
		}
		observes(b.observed(), head, splitFrames...)
		r := b.one()
		if r.Route.Reason != unrouted || r.Route.Pool != "" || r.RequestModel.OK || r.Outcome != meter.OK {
			t.Errorf("%s: route %+v, model %v, outcome %s", counted, r.Route, r.RequestModel, r.Outcome)
		}
		if diff := cmp.Diff(map[string]int{counted: 1}, b.telemetry.counts); diff != "" {
			t.Errorf("%s: counted (-want +got):\n%s", counted, diff)
		}
	}
}

// Where one filter alone observes, it is shown the body, and misses no hand-over.
func TestNoHandoverIsDue(t *testing.T) {
	for name, play := range map[string]func(e *envoy){
		"with a body": func(e *envoy) {
			e.send(requestHeaders(false, chatHead()...))
			e.send(requestBody(`{"model":"m"}`, true))
		},
		"without one":     func(e *envoy) { e.send(requestHeaders(true, ":method", "GET", ":path", "/v1/models")) },
		"an answer alone": func(*envoy) {},
	} {
		b := newBench(t)
		e := b.observed()
		play(e)
		e.send(responseHeaders(true, ":status", "204"))
		e.ended()
		b.one()
		if len(b.telemetry.counts) != 0 {
			t.Errorf("%s: counted %v", name, b.telemetry.counts)
		}
	}
	// The client hangs up before it has sent its body.
	b := newBench(t)
	e := b.observed()
	e.send(requestHeaders(false, chatHead()...))
	e.arrived()
	e.hangUp()
	b.one()
	if len(b.telemetry.counts) != 0 {
		t.Errorf("an upload that breaks off: counted %v", b.telemetry.counts)
	}
}

// The origin is Envoy's where this replica can believe it, else as long ago as
// the deciding one says: its clock is not asked.
func TestOriginOfAHandover(t *testing.T) {
	const wrong = 10 * time.Minute
	requestTime := epoch.Format(time.RFC3339Nano)
	handed := func(source meter.StartSource, start time.Time) []string {
		h := handover.Handover{
			Start: start, Source: source, Elapsed: 30 * time.Millisecond,
			Route: meter.Route{Endpoint: testEndpoint, Start: 20 * time.Millisecond, Duration: time.Millisecond},
		}
		return append(chatHead(), handover.Header, handover.Key(nil).Encode(&h, "req-1"))
	}
	for name, c := range map[string]struct {
		head    []string
		skew    time.Duration // of the observing replica's clock
		start   time.Time
		source  meter.StartSource
		arrived time.Duration // after the origin
		decided time.Duration
	}{
		"both believe Envoy": {
			handed(meter.StartEnvoy, epoch), 0,
			epoch, meter.StartEnvoy, 35 * time.Millisecond, 20 * time.Millisecond,
		},
		"the deciding one does not": {
			handed(meter.StartArrival, epoch.Add(-wrong)), 0,
			epoch, meter.StartEnvoy, 35 * time.Millisecond, 25 * time.Millisecond,
		},
		"the observing one does not": {
			handed(meter.StartEnvoy, epoch), wrong,
			epoch, meter.StartEnvoy, 30 * time.Millisecond, 20 * time.Millisecond,
		},
		"neither does": {
			handed(meter.StartArrival, epoch.Add(-wrong)), wrong,
			epoch.Add(-wrong), meter.StartArrival, 30 * time.Millisecond, 20 * time.Millisecond,
		},
	} {
		s, tel := newTestService()
		x := newExchange(s, &replies{}, caller{})
		at := epoch.Add(35*time.Millisecond + c.skew)
		deliver(t, x, at, message{phase: "request_headers", observe: true, headers: c.head, requestTime: requestTime})
		deliver(t, x, at, message{phase: "response_headers", observe: true, headers: streamHead, end: true})
		r := tel.recorded()[0]
		if !r.Start.Equal(c.start) || r.StartSource != c.source || r.End != c.arrived || r.Route.Start != c.decided {
			t.Errorf("%s: start %v by %s, arrived after %v, decided after %v; want %v, %s, %v, %v", name,
				r.Start, r.StartSource, r.End, r.Route.Start, c.start, c.source, c.arrived, c.decided)
		}
	}
}

// A FULL_DUPLEX_STREAMED request is held for what it asks behind its model, but
// not without end.
func TestHandoverOfALongRequest(t *testing.T) {
	for _, size := range []int{maxWait / 2, 2 * maxWait} {
		b := newBench(t)
		body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}],"stream":true,"n":3}`
		d := b.inline(duplex, none)
		p := newPlayer(t, d)
		p.request(duplex, shape{request: []string{body[:10_000], body[10_000 : size*3/4], body[size*3/4:]}})
		if p.seen.upstream != body {
			t.Errorf("%d bytes go on, want the %d that came", len(p.seen.upstream), len(body))
		}
		h, err := handover.Key(nil).Decode(p.seen.set[handover.Header], "req-1")
		whole := size < maxWait
		if err != nil || h.Asked.Model != "m" || h.Asked.Stream != whole || (h.Asked.N == 3) != whole {
			t.Errorf("%d bytes: %v, handed over is %+v", size, err, h.Asked)
		}
		d.hangUp()
	}
}

// Usage that is asked for in split stays with the client, and the observing side
// learns from it.
func TestUsageInSplit(t *testing.T) {
	for _, mode := range []bodyMode{buffered, duplex} {
		always := func(c *Config) { c.AskUsage = AskAlways }
		b := newBench(t, always)
		d := b.inline(mode, none)
		p := newPlayer(t, d)
		p.request(mode, shape{request: []string{`{"model":"m","stream":true,"messages":[]}`}})
		if !strings.Contains(p.seen.upstream, "continuous_usage_stats") {
			t.Errorf("%s: the server gets %s", mode, p.seen.upstream)
		}
		head := append(chatHead(), handover.Header, p.seen.set[handover.Header])
		e := b.observed()
		e.send(requestHeaders(false, head...))
		e.arrived()
		e.send(responseHeaders(false, ":status", "400", "content-type", "application/json"))
		e.send(responseBody(`{"error":{"message":"stream_options: unknown"}}`, true))
		e.ended()
		d.hangUp()
		b.one()
		if b.service.usage.ask(testPool, time.Now()) {
			t.Errorf("%s: the pool refused, and is asked again", mode)
		}
	}
}

// Which of the two streams accounts for a request that broke off before it was
// handed on: the deciding one, unless the request went on.
func TestDecidingStreamEnds(t *testing.T) {
	refused := &data.ResponseFlags{}
	for _, c := range []struct {
		name     string
		attempts uint32
		flags    *data.ResponseFlags
		status   int
		want     meter.Outcome // "": no record
	}{
		{"the client hung up in the upload", 0, clientHungUp, 0, meter.ClientCancelled},
		{"Envoy refused to buffer it", 0, refused, 413, meter.HTTPError},
		{"Envoy passed by this stream", 1, clientHungUp, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
			e := b.inline(buffered, none)
			e.send(timed(requestHeaders(false, chatHead()...)))
			e.recv()
			e.closeSend()
			entry := entryOf("", 0, c.flags)
			entry.CommonProperties.UpstreamRequestAttemptCount = c.attempts
			b.logged(withStatus(entry, c.status))
			b.drained()
			rs := b.telemetry.recorded()
			if c.want == "" {
				if len(rs) != 0 {
					t.Errorf("there is a record: %s", rs[0].Outcome)
				}
				return
			}
			if len(rs) != 1 || rs[0].Outcome != c.want || rs[0].Status != c.status || rs[0].RequestID != "req-1" {
				t.Errorf("the records are %+v", rs)
			}
		})
	}
}

func withStatus(e *data.HTTPAccessLogEntry, status int) *data.HTTPAccessLogEntry {
	if status > 0 {
		e.Response.ResponseCode = wrapperspb.UInt32(uint32(status))
	}
	return e
}

// Where the stream was drained, or the reply came too late, the request went on
// without it: the other stream makes the record.
func TestDecidingStreamPassedBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tel := newScriptedService()
		p := serve(s)
		p.send(timed(config(requestHeaders(false, chatHead()...), buffered, none)))
		synctest.Wait()
		now, cancel := context.WithCancel(t.Context())
		cancel()
		s.Drain(now)
		if err := <-p.result; err != nil || len(tel.recorded()) != 0 {
			t.Errorf("drained: the stream ended with %v, %d records", err, len(tel.recorded()))
		}
	})
	for name, c := range map[string]struct {
		mode wire.BodyMode
		late time.Duration // the reply
		want int
	}{
		"the client hung up":               {wire.ModeBuffered, time.Millisecond, 1},
		"Envoy waited no longer":           {wire.ModeBuffered, time.Second + 1, 0},
		"it waits as long as it takes":     {wire.ModeFullDuplex, time.Minute, 1},
		"and the client hung up all along": {wire.ModeFullDuplex, time.Millisecond, 1},
	} {
		s, tel := newTestService()
		x := newExchange(s, gone{}, caller{})
		first := epoch.Add(-c.late) // the clock stands at epoch
		m := message{phase: "request_headers", headers: chatHead(), end: true, request: c.mode, response: wire.ModeNone}
		if c.mode == wire.ModeFullDuplex {
			m.end = false
			deliver(t, x, first, m)
			m = message{phase: "request_body", body: `{"model":"m"}`, end: true}
		}
		if _, err := x.handle(m.wire(), first); err == nil {
			t.Error("no error of a reply that could not be sent")
		}
		x.closed(epoch)
		s.join.Close() // no entry tells
		if n := len(tel.recorded()); n != c.want {
			t.Errorf("%s: %d records, want %d", name, n, c.want)
		}
	}
}

// Where the hand-over did not get out, the entry of Envoy's access log is the
// deciding stream's still.
func TestHandoverThatIsNotSent(t *testing.T) {
	s, tel := newTestService()
	x := newExchange(s, gone{}, caller{})
	m := message{
		phase: "request_headers", headers: chatHead(), end: true, request: wire.ModeBuffered, response: wire.ModeNone,
		requestTime: epoch.Format(time.RFC3339Nano),
	}
	w := m.wire()
	w.Attributes.RequestID = "req-1"
	if _, err := x.handle(w, epoch); err == nil {
		t.Error("no error of a reply that could not be sent")
	}
	s.join.Add(&wire.LogEntry{RequestID: "req-1", Start: epoch, Flags: wire.FlagClient})
	x.closed(epoch)
	if rs := tel.recorded(); len(rs) != 1 || rs[0].Outcome != meter.ClientCancelled {
		t.Errorf("the records are %+v", rs)
	}
}

// A first message that lay unread tells that Envoy may have gone on, however the
// stream ends: measured against the others of that Envoy, whose clock may be off.
func TestDecidingStreamRunsLate(t *testing.T) {
	for name, c := range map[string]struct {
		offset, waited time.Duration
		want           int
	}{
		"at once":                      {0, 3 * time.Millisecond, 1},
		"a little late":                {0, time.Second, 1},
		"late":                         {0, time.Second + time.Millisecond, 0},
		"at once, by another clock":    {time.Hour, 3 * time.Millisecond, 1},
		"late, by another clock":       {time.Hour, 3 * time.Second, 0},
		"late, by a clock that is off": {-time.Hour, 3 * time.Second, 0},
	} {
		s, tel := newTestService()
		for i, waited := range []time.Duration{0, c.waited} {
			x := newExchange(s, &replies{}, caller{peer: "envoy"})
			deliver(t, x, epoch.Add(time.Duration(i)*time.Second), message{
				phase: "request_headers", headers: chatHead()[:8], request: wire.ModeBuffered, response: wire.ModeNone,
				requestTime: epoch.Add(time.Duration(i)*time.Second - waited - c.offset).Format(time.RFC3339Nano),
			})
			x.closed(epoch.Add(time.Duration(i) * time.Second))
		}
		if n := len(tel.recorded()) - 1; n != c.want {
			t.Errorf("%s: %d records, want %d", name, n, c.want)
		}
	}
}

// gone is a stream that Envoy has closed.
type gone struct{}

func (gone) Send(*wire.Reply) error { return io.EOF }

// Entries find the observing stream, on the replica that also decided too, by
// span id or by what came with the request.
func TestAccessLogInSplit(t *testing.T) {
	for _, spanned := range []bool{true, false} {
		b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
		d := b.inline(buffered, none)
		d.send(timed(requestHeaders(false, chatHead()...)))
		d.recv()
		d.send(requestBody(`{"model":"m","stream":true}`, true))
		reply := d.recv()
		head := chatHead()
		for _, h := range reply.GetRequestBody().GetResponse().GetHeaderMutation().GetSetHeaders() {
			head = append(head, h.GetHeader().GetKey(), string(h.GetHeader().GetRawValue()))
		}
		span := ""
		if spanned {
			span = reply.GetDynamicMetadata().GetFields()["inferspan"].GetStructValue().GetFields()[wire.SpanKey].GetStringValue()
		}
		e := b.observed()
		e.send(timed(requestHeaders(false, head...)))
		e.arrived()
		entry := entryOf(span, 0, clientHungUp)
		if spanned {
			entry.CommonProperties.StartTime = timestamppb.New(epoch) // of no one
		}
		b.logged(entry)
		e.ended()
		d.closeSend()
		if r := b.one(); r.Outcome != meter.ClientCancelled || r.Route.Endpoint != testEndpoint {
			t.Errorf("by span id %t: outcome %s, route %+v", spanned, r.Outcome, r.Route)
		}
		if n := b.telemetry.count("unmatched: ambiguous") + b.telemetry.count("unmatched: no_exchange"); n != 0 {
			t.Errorf("by span id %t: %d entries unmatched", spanned, n)
		}
	}
}

// What Envoy answers in the deciding filter's place is that filter's.
func TestAnsweredBeforeTheObserver(t *testing.T) {
	for details, want := range map[string]int{
		"inferspan_no_endpoint":     0,
		"request_payload_too_large": 0,
		"ext_proc_error_gRPC_error": 1, // no processor saw it
		"rbac_access_denied":        1,
	} {
		b := newBench(t)
		e := b.observed()
		e.send(attributes(responseHeaders(false, ":status", "413"), map[string]any{"response.code_details": details}))
		e.send(responseBody("{}", true))
		e.ended()
		b.drained()
		if n := len(b.telemetry.recorded()); n != want {
			t.Errorf("%s: %d records, want %d", details, n, want)
		}
	}
}

package processor

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/inferspan/inferspan/processor/accesslog"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
)

// ownDetails begins the response code details of our own answers.
const ownDetails = "inferspan_"

// unrouted is the reason of an exchange for which we decided nothing.
const unrouted = "unrouted"

// sender takes the replies of one stream, in order.
type sender interface {
	Send(r *wire.Reply) error
}

// exchange is one HTTP request and its response as one stream shows it. It
// answers the messages and makes the record.
//
// Two things may fail without the traffic: what panics in deciding or measuring
// is caught by guard, and from then on the exchange lets everything pass.
type exchange struct {
	s      *Service
	cfg    *Config // as it was when the exchange began
	out    sender
	caller caller
	reply  wire.Reply // of the message in hand, reused

	begun                     bool
	there                     bool // a phase came: there is an exchange
	observe                   bool
	requestMode, responseMode wire.BodyMode

	// arrival is when the first message came; ahead is how much earlier the
	// origin is. Invariant: ahead >= 0.
	arrival  time.Time
	ahead    time.Duration
	last     time.Time // of the last message
	answered time.Time // when the last reply to the message in hand was sent; zero: none was

	request  requestSide
	response responseSide

	start  meter.Start
	meter  *meter.Meter // nil until ids are needed
	labels meter.Labels
	route  meter.Route
	load   route.Load // counted as in flight, where it has an endpoint
	live   *liveEntry
	// joined is the exchange's place among those that access-log entries tell
	// of; account is the entry that came before the end, wake is called then.
	joined     *accesslog.Exchange
	envoyStart time.Time // request.time, zero: none
	account    atomic.Pointer[accesslog.Account]
	wake       func()
	// recording takes the exchange as it passes; nil: it is not recorded.
	recording Recording

	// broken: measuring panicked. What it would say can't be trusted.
	broken bool
	// foreign: another stream of ours makes the record.
	foreign bool
	// passedBy: it may be that Envoy waited for us no longer, and went on.
	passedBy bool
	finished bool
}

func newExchange(s *Service, out sender, c caller) *exchange {
	return &exchange{s: s, cfg: s.settings(), out: out, caller: c, wake: func() {}}
}

// handle answers m, which came at now. over says that the stream is to be ended.
func (x *exchange) handle(m *wire.Message, now time.Time) (over bool, err error) {
	x.answered, x.last = time.Time{}, now
	if !x.begun {
		x.begin(m, now)
	}
	if m.Phase != 0 && !x.there {
		x.appear()
	}
	if m.HasSubset {
		x.request.keepSubset(m)
	}
	switch m.Phase {
	case wire.RequestHeaders:
		err = x.onRequestHeaders(m)
	case wire.RequestBody:
		err = x.onRequestBody(m)
	case wire.RequestTrailers:
		err = x.onRequestTrailers(m)
	case wire.ResponseHeaders:
		err = x.onResponseHeaders(m)
	case wire.ResponseBody:
		err = x.onResponseBody(m)
	case wire.ResponseTrailers:
		err = x.onResponseTrailers(m)
	default:
		x.count(countSpurious)
	}
	return x.request.rejected || x.observe && x.response.ended, err
}

// begin takes what only the first message of a stream says.
func (x *exchange) begin(m *wire.Message, now time.Time) {
	x.begun = true
	x.observe = m.Observe
	x.requestMode, x.responseMode = x.cfg.AssumeRequest, x.cfg.AssumeResponse
	switch {
	case m.Observe:
		// Nothing else is sent in observability mode.
		x.requestMode, x.responseMode = wire.ModeStreamed, wire.ModeStreamed
	case m.HasConfig:
		x.requestMode, x.responseMode = m.RequestMode, m.ResponseMode
	}
	x.foreign = !x.observe && x.responseMode == wire.ModeNone

	x.arrival = now
	x.envoyStart = requestTime(m.Attributes.RequestTime)
	origin, source := x.s.origins.origin(x.caller.peer, now, x.envoyStart)
	x.ahead = now.Sub(origin)
	x.passedBy = x.foreign && x.s.origins.waited(x.caller.peer, now, x.envoyStart) > maxUnread
	// Stripped of its monotonic reading, the origin is the one wall clock anchor.
	x.start = meter.Start{At: origin.Round(0), Source: source, RequestID: strings.Clone(m.Attributes.RequestID)}
	x.labels.Operation = meter.Operation("")
	x.route.Reason = unrouted
}

// appear takes the first message that has a phase. A stream without one shows no
// exchange.
func (x *exchange) appear() {
	x.there = true
	if !x.foreign {
		x.live = x.s.live.add(meter.Live{Labels: x.labels, Start: x.start.At})
	}
}

// at is now as an offset from the origin, in whole microseconds: what a record
// shows and a recording holds, so that the one replays to the other.
func (x *exchange) at(now time.Time) time.Duration {
	return (now.Sub(x.arrival) + x.ahead).Truncate(time.Microsecond)
}

// bound tells whether the bytes of a direction go through us and are not all
// through: the stream can't end without losing some.
func (x *exchange) bound() bool {
	if x.finished && x.request.rejected {
		return false
	}
	return x.requestMode == wire.ModeFullDuplex && x.request.seen && !x.request.ended ||
		(x.responseMode == wire.ModeFullDuplex || x.response.edited()) && !x.response.ended
}

// send sends the reply to a message in hand, and begins the next one.
func (x *exchange) send(p wire.Phase) error {
	x.reply.Phase = p
	err := x.out.Send(&x.reply)
	x.reply = wire.Reply{Set: x.reply.Set[:0], Remove: x.reply.Remove[:0]}
	x.answered = x.s.cfg.Now()
	if err != nil && x.answered.Sub(x.arrival) > maxUnread {
		x.passedBy = true
	}
	return err
}

// pass answers a message of phase p with nothing changed, where an answer is
// owed.
func (x *exchange) pass(p wire.Phase) error {
	if x.observe {
		return nil
	}
	return x.send(p)
}

// identify makes the ids and the meter, once.
func (x *exchange) identify() {
	if x.meter != nil || x.broken {
		return
	}
	x.guard("begin", func() {
		x.start.Trace = x.s.cfg.Telemetry.Begin(Begin{
			Operation:         x.labels.Operation,
			Model:             x.labels.Model,
			EnvoyTraceparent:  x.caller.traceparent,
			EnvoyTracestate:   x.caller.tracestate,
			ClientTraceparent: x.request.head.traceparent,
			ClientTracestate:  x.request.head.tracestate,
			Wish:              x.request.wish,
		})
	})
	x.beginMeter()
}

// beginMeter begins to measure an exchange that has its ids.
func (x *exchange) beginMeter() {
	x.labels.Trace = &x.start.Trace
	x.broken = !x.guard("meter", func() { x.meter = meter.New(x.start, x.cfg.Meter) })
}

// measure runs f on the meter unless measuring has failed before.
func (x *exchange) measure(f func(*meter.Meter)) {
	if x.finished {
		return
	}
	x.identify()
	if x.broken {
		return
	}
	x.broken = !x.guard("meter", func() { f(x.meter) })
}

// guard runs f and tells whether it returned. A panic in it is counted and ends
// there.
func (x *exchange) guard(what string, f func()) (returned bool) {
	defer func() {
		if p := recover(); p != nil {
			x.s.panicked(what, p, x.ids()...)
		}
	}()
	f()
	return true
}

// show updates what the live table shows of the exchange.
func (x *exchange) show() {
	if x.live != nil {
		x.live.state.Store(&meter.Live{Labels: x.labels, Stream: x.response.stream, Start: x.start.At})
	}
}

// hide takes the exchange out of the live table.
func (x *exchange) hide() {
	x.s.live.remove(x.live)
	x.live = nil
}

// closed ends the exchange because Envoy closed the stream at now. In observe
// mode it waits before it does, and the exchange was over by so much earlier.
func (x *exchange) closed(now time.Time) {
	end := now
	if x.observe {
		end = now.Add(-x.cfg.DeferredClose)
		if end.Before(x.last) {
			end = x.last
		}
	}
	x.finish(meter.CauseAborted, end)
}

// finish ends the exchange and hands out its record, the first time that it is
// called. Where nobody knows yet how the exchange broke off, the record waits for
// Envoy's access log, and nothing of x may be used any more.
func (x *exchange) finish(c meter.Cause, now time.Time) {
	if !x.there || x.finished {
		return
	}
	mine := x.accounts(c)
	if mine {
		x.missed()
		x.ask()
		x.identify()
	}
	x.finished = true
	x.hide()
	x.unload()
	end := x.at(now)
	switch {
	case !mine:
		x.joined.Leave()
		if x.recording != nil {
			x.endRecording(c, nil)
		}
	case c == meter.CauseAborted && x.foreign:
		x.letGo()
		x.joined.Wait(func(a *accesslog.Account) { x.settleForeign(c, end, a) })
	case c == meter.CauseAborted:
		x.letGo()
		x.joined.Wait(func(a *accesslog.Account) { x.settle(c, end, a) })
	default:
		x.settle(c, end, x.joined.End())
	}
}

// letGo drops what the record does not need: it may take seconds to be made.
func (x *exchange) letGo() {
	x.out, x.reply = nil, wire.Reply{}
	x.request.held, x.request.rewriter = nil, nil
	x.response.edits = edits{}
}

// record closes the meter. Where measuring failed the exchange still has a
// record, which says that our view of it ended.
func (x *exchange) record(c meter.Cause, end time.Duration) *meter.Record {
	var r *meter.Record
	if !x.broken {
		x.guard("meter", func() { r = x.meter.Close(end, c) })
	}
	if r != nil {
		return r
	}
	return &meter.Record{
		RequestID: x.start.RequestID, Trace: x.start.Trace,
		Start: x.start.At, StartSource: x.start.Source,
		Method: x.start.Method, Path: x.start.Path, Dialect: x.request.dialect,
		Status: x.response.status, Stream: x.response.stream,
		Route: x.route, Outcome: meter.Lost, End: end,
	}
}

func (x *exchange) count(event string) {
	x.guard("telemetry", func() { x.s.cfg.Telemetry.Count(event) })
}

package processor

import (
	"errors"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/accesslog"
	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
)

// In a split deployment two filters see an exchange, and any two replicas may
// serve them. The one that decides sees the request only; its reply hands over to
// the one that observes, which makes the record.

// The hand-overs that could not be used, as they are counted. The observed
// exchange then has a record of what was seen.
const (
	countNoHandover       = "handover_missing" // and the filter isn't shown what was asked
	countHandoverVersion  = "handover_version"
	countHandoverUnsigned = "handover_unsigned"
	countHandoverForged   = "handover_forged"
	countHandoverBroken   = "handover_malformed"
)

// maxWait is how much of a FULL_DUPLEX_STREAMED request is held for the
// hand-over, so that it tells all that was asked: the server can't begin before
// the body's end anyhow.
const maxWait = 256 << 10

// maxUnread is how long a message may have waited for its reply until Envoy is taken
// to have gone on: its message timeout is 2 s in deploy/.
const maxUnread = time.Second

// handOver has the reply tell the observing filter what is known of the exchange.
func (x *exchange) handOver() {
	r := &x.request
	h := handover.Handover{
		Trace: x.start.Trace, Start: x.start.At, Source: x.start.Source, Elapsed: x.at(x.s.cfg.Now()),
		Wanted: x.start.Wanted, Asked: r.asked, Options: r.options, Usage: r.usage, Route: x.route,
		Tokens: r.tokens, PromptBytes: r.promptBytes,
	}
	if r.rewriter != nil {
		h.Usage = r.rewriter.Asked()
	}
	x.guard("handover", func() {
		value := x.cfg.HandoverKey.Encode(&h, r.head.requestID)
		x.reply.Set = append(x.reply.Set, wire.Header{Name: handover.Header, Value: value})
	})
}

// takeOver has an observed exchange begin where the deciding filter handed it
// over, if it did.
func (x *exchange) takeOver() {
	r := &x.request
	if r.head.handover == "" {
		return
	}
	var h handover.Handover
	var err error
	if !x.guard("handover", func() { h, err = x.cfg.HandoverKey.Decode(r.head.handover, r.head.requestID) }) {
		return
	}
	if err != nil {
		x.count(handoverFault(err))
		return
	}
	if x.start.Source != meter.StartEnvoy {
		// Envoy's clock or ours can't be believed. That of the other replica need
		// not be: it says how long ago the exchange began.
		x.start.At, x.start.Source, x.ahead = h.Start, h.Source, h.Elapsed
	} else if h.Source != meter.StartEnvoy {
		h.Route.Start = max(0, x.at(x.last)-h.Elapsed+h.Route.Start)
	}
	x.start.Trace, x.start.Wanted = h.Trace, h.Wanted
	h.Asked.Dialect = r.dialect
	r.scanner, r.asked, r.options, r.usage, r.promptBytes = nil, h.Asked, h.Options, h.Usage, h.PromptBytes
	x.route = h.Route
	x.labels.Model, x.labels.Pool = h.Asked.Model, h.Route.Pool
	x.joined.Identify(h.Trace.SpanID)
	x.beginMeter()
	x.ask()
	x.measure(func(m *meter.Meter) { m.Routed(x.route) })
	x.show()
	if h.Route.Endpoint != "" {
		x.putOn(route.Load{Endpoint: h.Route.Endpoint, Tokens: h.Tokens})
	}
	x.guard("route", func() { x.s.cfg.Router.Arrived(h.Trace.SpanID) })
}

func handoverFault(err error) string {
	switch {
	case errors.Is(err, handover.ErrVersion):
		return countHandoverVersion
	case errors.Is(err, handover.ErrUnsigned):
		return countHandoverUnsigned
	case errors.Is(err, handover.ErrForged):
		return countHandoverForged
	}
	return countHandoverBroken
}

// missed counts an observed exchange that nobody handed over, where what was
// asked is known of no other way. Without an answer the client may have left
// before its request's body was sent, to a filter that is shown it.
func (x *exchange) missed() {
	r := &x.request
	if x.observe && r.seen && r.hasBody && !r.bodySeen && x.response.seen && r.head.handover == "" {
		x.count(countNoHandover)
	}
}

// expect counts the exchange at the endpoint of l until the observing stream does.
func (x *exchange) expect(l route.Load) {
	x.request.tokens = l.Tokens
	x.guard("route", func() { x.s.cfg.Router.Expect(x.start.Trace.SpanID, l) })
}

// accounts tells whether this stream makes the record of an exchange that ended
// by c. A deciding one does where nobody else can: where it rejected, and where
// the request broke off before it was handed on. Where our view of it is lost, the
// request went on.
func (x *exchange) accounts(c meter.Cause) bool {
	return !x.foreign || c == meter.CauseRejected || !x.request.handedOn && c != meter.CauseLost
}

// tooLargeDetails are the response code details of the 413 with which Envoy
// refuses to buffer a request for the deciding filter.
const tooLargeDetails = "request_payload_too_large"

// answeredBefore tells, by the response code details, whether an observed answer
// is for a request that the deciding filter accounts for: we rejected it, or Envoy
// did before it was handed on.
func (x *exchange) answeredBefore(details string) bool {
	return strings.HasPrefix(details, ownDetails) || !x.request.seen && details == tooLargeDetails
}

// settleForeign is settle for a request that broke off before it was handed on. It
// may run on another goroutine.
//
// When a client hangs up Envoy closes its side of the stream. When it waits no
// longer for a reply it resets the stream, too, and goes on, and the other stream
// makes the record. So a reset is taken for that where no entry says what it was,
// and so is the end of a stream that was read or answered late. Only with
// FULL_DUPLEX_STREAMED Envoy waits as long as it takes.
func (x *exchange) settleForeign(c meter.Cause, end time.Duration, a *accesslog.Account) {
	switch {
	case a == nil && x.passedBy && x.requestMode != wire.ModeFullDuplex, a != nil && a.Attempts > 0:
		if x.recording != nil {
			x.endRecording(c, nil)
		}
		return
	case a != nil && a.Status > 0 && !x.broken:
		// Envoy answered itself.
		x.response.status = a.Status
		x.broken = !x.guard("meter", func() { x.meter.Headers(x.trueEnd(end, a), a.Status, "", "") })
	}
	x.settle(c, end, a)
}

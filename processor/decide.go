package processor

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
)

// The keys of the dynamic metadata in our namespace, kept few: other filters
// get them with every message.
const (
	metadataTrace    = "trace_id"
	metadataModel    = "model"
	metadataPool     = "pool"
	metadataEndpoint = "endpoint"
	metadataReason   = "reason"
)

func contentLength(n int) wire.Header {
	return wire.Header{Name: contentLengthHeader, Value: strconv.Itoa(n)}
}

// decide decides where the request goes by what was read of it, and puts the
// headers and metadata that say so into the reply. It returns the name that the
// model is to have, "" where the body keeps its own.
func (x *exchange) decide() (model string) {
	r := &x.request
	x.strip()
	x.readSoFar()
	x.identify()
	if r.decided {
		return ""
	}
	r.decided = true
	var d route.Decision
	begun := x.s.cfg.Now()
	if !x.guard("route", func() {
		d = x.s.cfg.Router.Decide(route.Request{
			Method: r.head.method, Path: r.head.path, Model: r.asked.Model, HasModel: r.asked.HasModel,
			JSON: r.object, HasBody: r.hasBody,
			Subset: r.subset, HasSubset: r.hasSubset, Priority: r.priority,
			Session: x.session(), Prefix: r.prompt.Prefix, PromptBytes: x.promptSize(),
		})
	}) {
		return ""
	}
	took := x.s.cfg.Now().Sub(begun)
	x.route = meter.Route{
		Pool: d.Pool, Endpoint: d.Endpoint, Policy: d.Policy, Reason: d.Reason,
		Candidates: d.Candidates, Score: d.Score, PredictedCachedTokens: meter.Opt[int64](d.PredictedCached),
		Start: x.at(begun), Duration: took,
	}
	x.labels.Pool = d.Pool
	x.guard("telemetry", func() { x.s.cfg.Telemetry.Routed(x.route, x.labels) })
	x.measure(func(m *meter.Meter) { m.Routed(x.route) })
	x.show()
	switch {
	case d.Reject != nil:
		x.reject(d.Reject)
	case d.Answer != nil:
		x.answer(d.Answer, d.Reason)
	default:
		x.direct(&d)
		return d.Model
	}
	return ""
}

// direct puts a decision into the reply.
func (x *exchange) direct(d *route.Decision) {
	if l := (route.Load{Endpoint: d.Endpoint, Tokens: d.Tokens}); x.foreign {
		x.expect(l)
	} else {
		x.putOn(l)
	}
	// The endpoint picker protocol wants the two to be equal.
	destination := strings.Join(append([]string{d.Endpoint}, d.Fallbacks...), ",")
	x.reply.Endpoint = destination
	x.reply.Set = append(x.reply.Set, wire.Header{Name: destinationHeader, Value: destination})
	if x.cfg.PoolHeader {
		x.reply.Set = append(x.reply.Set, wire.Header{Name: poolHeader, Value: d.Pool})
		x.reply.ClearRoute = true
	}
	x.reply.Metadata = x.metadata()
	x.reply.Metadata[metadataEndpoint] = d.Endpoint
}

// metadata is what other filters and the access log get of the exchange, and
// how its entry in the log finds it.
func (x *exchange) metadata() map[string]string {
	m := map[string]string{metadataPool: x.route.Pool}
	if x.request.asked.HasModel {
		// Envoy writes it into lines of text as it is.
		m[metadataModel] = route.Clean(x.request.asked.Model)
	}
	if traced(&x.start.Trace) {
		m[metadataTrace] = traceID(&x.start.Trace)
		m[wire.SpanKey] = hex.EncodeToString(x.start.Trace.SpanID[:])
		x.joined.Identify(x.start.Trace.SpanID)
	}
	return m
}

// reject makes the reply our refusal.
func (x *exchange) reject(r *route.Rejection) {
	x.answer(&route.Answer{Status: r.Status, ContentType: "application/json", Body: r.Body()}, r.Reason)
	if r.RetryAfter > 0 {
		h := &x.reply.Immediate.Headers
		*h = append(*h, wire.Header{Name: retryHeader, Value: strconv.Itoa(r.RetryAfter)})
	}
}

// answer makes the reply our own answer.
func (x *exchange) answer(a *route.Answer, reason string) {
	x.request.rejected = true
	x.response.status = a.Status
	x.reply.Metadata = x.metadata()
	x.reply.Metadata[metadataReason] = reason
	headers := []wire.Header{
		{Name: "content-type", Value: a.ContentType},
		{Name: reasonHeader, Value: reason},
	}
	if traced(&x.start.Trace) {
		headers = append(headers, wire.Header{Name: traceIDHeader, Value: traceID(&x.start.Trace)})
	}
	x.reply.Immediate = &wire.Immediate{Status: a.Status, Headers: headers, Body: a.Body, Details: ownDetails + reason}
}

// tooLarge rejects a request whose model did not come within the limit.
func (x *exchange) tooLarge() {
	x.refuse(&route.Rejection{
		Status: http.StatusRequestEntityTooLarge,
		Reason: "too_large",
		Message: "No top-level `model` stands in the first " + strconv.Itoa(x.cfg.HoldLimit) +
			" bytes of the request. Put `model` first, in a form before the file.",
		Type:  "RequestEntityTooLargeError",
		Param: "model",
	})
}

// overloaded rejects a request that there is no room to hold until its model is
// there: that is for want of ours, whatever the request's size.
func (x *exchange) overloaded() {
	x.refuse(&route.Rejection{
		Status:     http.StatusServiceUnavailable,
		Reason:     "overloaded",
		Message:    "Too many requests are held until their `model` is known. Try again in 1 s, and put `model` first.",
		Type:       "Service Unavailable",
		RetryAfter: 1,
	})
}

// refuse rejects a request without having asked the router.
func (x *exchange) refuse(r *route.Rejection) {
	x.request.decided = true
	x.identify()
	x.route.Reason = r.Reason
	x.guard("telemetry", func() { x.s.cfg.Telemetry.Routed(x.route, x.labels) })
	x.measure(func(m *meter.Meter) { m.Routed(x.route) })
	x.reject(r)
}

// sendDecision decides and sends the reply to p.
func (x *exchange) sendDecision(p wire.Phase) error {
	x.decide()
	return x.sendDecided(p)
}

// sendDecided sends the reply that decide prepared, as the reply to p.
func (x *exchange) sendDecided(p wire.Phase) error {
	rejected := x.request.rejected
	// Trailers are too late for headers.
	if !rejected && p != wire.RequestTrailers {
		if x.foreign {
			x.handOver()
		}
		handOn(&x.reply, &x.start.Trace, x.request.head.tracestate != "")
	}
	if err := x.send(p); err != nil {
		return err
	}
	x.request.handedOn = !rejected
	if x.foreign && x.request.handedOn {
		// From here on entries of the access log are the other stream's.
		x.joined.Leave()
	}
	if x.request.ended || rejected {
		x.ask()
	}
	if rejected {
		x.finishOwn()
	}
	return nil
}

// finishOwn ends an exchange that we answered. What we answer below 400 is no
// failure.
func (x *exchange) finishOwn() {
	at, status := x.at(x.last), x.response.status
	x.measure(func(m *meter.Meter) { m.Headers(at, status, "application/json", "") })
	if x.recording != nil {
		x.endRecording(meter.CauseRejected, nil) // no server had a part in it
	}
	cause := meter.CauseEnd
	if status >= http.StatusBadRequest {
		cause = meter.CauseRejected
	}
	x.finish(cause, x.last)
}

package processor

import (
	"strings"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// responseSide is what is known of the response.
type responseSide struct {
	seen   bool // its headers came
	ended  bool // nothing of it is to come
	status int
	// details are Envoy's response code details, "" where it does not tell.
	details string
	stream  bool
	bytes   int64 // of the body, so far

	edits
	refusal []byte // the beginning of an error's body
}

func (x *exchange) onResponseHeaders(m *wire.Message) error {
	if x.response.seen || x.response.ended {
		x.count(countSpurious)
		return x.pass(m.Phase)
	}
	x.response.seen = true
	h := readResponseHead(m.Headers)
	x.response.status, x.response.stream = h.status, eventStream(h.contentType)
	x.response.details = strings.Clone(m.Attributes.CodeDetails)
	x.labels.Status = h.status
	x.response.ended = m.EndOfStream
	x.beginEdits(&h)
	if !x.observe {
		if !x.foreign || x.meter != nil {
			x.identify()
			if traced(&x.start.Trace) {
				x.reply.Set = append(x.reply.Set, wire.Header{Name: traceIDHeader, Value: traceID(&x.start.Trace)})
			}
		}
		if err := x.send(m.Phase); err != nil {
			return err
		}
	} else if x.answeredBefore(m.Attributes.CodeDetails) {
		x.foreign, x.request.handedOn = true, true
	}
	if x.foreign {
		x.hide()
	} else {
		x.ask()
		x.served(m)
		at := x.at(x.last)
		x.measure(func(r *meter.Meter) {
			r.Headers(at, h.status, h.contentType, h.contentEncoding)
			r.Routed(x.route)
		})
		if x.recording != nil {
			x.toRecording(func(r Recording) { r.Response(at, h.status, pairs(m.Headers)) })
		}
		x.show()
	}
	x.endResponse()
	return nil
}

// served notes who answered, as Envoy tells it.
func (x *exchange) served(m *wire.Message) {
	x.route.Served = strings.Clone(m.Attributes.UpstreamAddress)
	if x.route.Served == "" {
		x.route.Served = strings.Clone(m.ServedEndpoint)
	}
	x.route.Attempts = m.Attributes.Attempts
	x.moved(x.route.Served)
}

// onResponseBody answers first: no frame waits for its own measuring. Measured
// is what the server sent, not what the client gets of it.
func (x *exchange) onResponseBody(m *wire.Message) error {
	duplex := x.responseMode == wire.ModeFullDuplex && !x.observe
	if x.response.ended {
		x.count(countAfterEnd)
		if duplex {
			return nil
		}
		return x.pass(m.Phase)
	}
	x.response.ended = m.EndOfStream
	x.response.bytes += int64(len(m.Body))
	var err error
	switch {
	case x.response.edited():
		err = x.sendEdited(m)
	case duplex:
		err = x.echo(m.Phase, m.Body, m.EndOfStream)
	default:
		err = x.pass(m.Phase)
	}
	if err != nil {
		return err
	}
	if len(m.Body) > 0 && !x.foreign {
		x.readRefusal(m.Body)
		x.observeFrame(m.Body)
	}
	x.endResponse()
	return nil
}

// observeFrame measures one frame of the response.
func (x *exchange) observeFrame(frame []byte) {
	at := x.at(x.last)
	if x.recording != nil {
		x.toRecording(func(r Recording) { r.Frame(at, frame) })
	}
	var reached meter.Milestone
	x.measure(func(r *meter.Meter) {
		reached = r.Observe(at, frame)
		x.live.progress(r)
	})
	if reached == 0 {
		return
	}
	if reached&meter.ReachedFirstToken != 0 {
		x.prefilled()
	}
	l := x.labels
	if l.Endpoint = x.route.Served; l.Endpoint == "" {
		l.Endpoint = x.route.Endpoint
	}
	x.guard("telemetry", func() { x.s.cfg.Telemetry.First(reached, at, l) })
	if reached&meter.ReachedDone != 0 {
		x.hide()
	}
}

func (x *exchange) onResponseTrailers(m *wire.Message) error {
	if x.response.ended {
		x.count(countAfterEnd)
		return x.pass(m.Phase)
	}
	x.response.ended = true
	if err := x.flushEdits(); err != nil {
		return err
	}
	if err := x.pass(m.Phase); err != nil {
		return err
	}
	x.endResponse()
	return nil
}

// endResponse finishes the exchange if the response is over.
func (x *exchange) endResponse() {
	if x.response.ended {
		x.finish(meter.CauseEnd, x.last)
	}
}

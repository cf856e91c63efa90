package processor

import (
	"errors"
	"slices"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/wire"
)

// maxPiece is the number of body bytes in one FULL_DUPLEX_STREAMED reply: below
// the 64 KiB from which Envoy may refuse a message.
const maxPiece = 62_000

// duplexRequest takes one frame of a FULL_DUPLEX_STREAMED request: held back
// until the request's model is known, echoed from then on.
func (x *exchange) duplexRequest(m *wire.Message) error {
	r := &x.request
	if r.ended {
		// Some Envoys send the end twice. All was echoed, nothing is owed.
		x.count(countAfterEnd)
		return nil
	}
	r.ended = m.EndOfStream
	if !r.holding {
		return x.relay(m.Body, m.EndOfStream)
	}
	x.scan(m.Body)
	r.held = append(r.held, m.Body...)
	switch {
	case m.EndOfStream:
		x.endScan()
	case x.waits():
		small := len(r.held) <= x.cfg.HoldLimit
		if small && x.hold() {
			return nil
		}
		if !r.scanner.ModelKnown() {
			if small {
				x.overloaded()
			} else {
				x.tooLarge()
			}
			return x.sendDecided(wire.RequestHeaders)
		}
		// The prefix or the rest for the hand-over is late. Both can be done without.
	}
	x.decideHeld()
	return x.release(m.EndOfStream)
}

// waits tells whether what the decision needs is still to come: the model, where
// a pool picks by it the prompt's prefix, and where another filter observes all
// that is asked.
func (x *exchange) waits() bool {
	s := x.request.scanner
	if s == nil || s.Finished() {
		return false
	}
	if x.foreign && len(x.request.held) < maxWait {
		return true
	}
	return !s.ModelKnown() || x.byPrefix() && !x.request.form && !s.PrefixKnown()
}

// decideHeld decides by the held part of the body, and begins to rewrite it
// where the model has another name at its servers, or usage is asked for, and
// where another model may follow.
func (x *exchange) decideHeld() {
	r := &x.request
	e := x.edit(x.decide())
	if e == (dialect.Edit{}) {
		return
	}
	var w *dialect.Rewriter
	var out []byte
	if !x.guard("rewrite", func() {
		if r.scanner != nil {
			w, out = r.scanner.Edit(r.held, e)
			return
		}
		w = dialect.NewEditor(r.dialect, e)
		out = w.Write(nil, r.held)
	}) {
		r.alias = ""
		return // nothing went out yet: the body passes as it came
	}
	if e.Ask && (w.Asked().Any() || !w.Scanner().Finished()) {
		// Past this reply it is too late, and the rest may ask.
		x.narrow()
	}
	r.rewriter, r.held = w, out
	if r.scanner != nil {
		// One scan is enough from here on.
		r.scanner = w.Scanner()
	}
}

// release sends the reply to the headers and what was held of the body. A body
// that trailers follow ends without end.
func (x *exchange) release(end bool) error {
	r := &x.request
	r.holding = false
	if err := x.sendDecided(wire.RequestHeaders); err != nil || r.rejected {
		return err
	}
	defer x.dropHeld()
	if r.ended && r.rewriter != nil {
		return x.flush(r.held, end)
	}
	return x.echo(wire.RequestBody, r.held, end)
}

// relay echoes one frame after the decision.
func (x *exchange) relay(body []byte, end bool) error {
	r := &x.request
	if r.rewriter == nil {
		if err := x.echo(wire.RequestBody, body, end); err != nil {
			return err
		}
		x.scan(body)
		if end {
			x.endScan()
			x.ask()
		}
		return nil
	}
	var out []byte
	if !x.guard("rewrite", func() { out = r.rewriter.Pass(body) }) {
		// What of the body it has in hand can't be told.
		return errors.New("rewrite a request: panic within its body")
	}
	if end {
		return x.flush(out, true)
	}
	return x.echo(wire.RequestBody, out, false)
}

// flush sends out, and after it what the rewriter still holds of a body that is
// over.
func (x *exchange) flush(out []byte, end bool) error {
	r := &x.request
	x.readSoFar()
	// Behind out there may be bytes of the message that it came in.
	if !x.guard("rewrite", func() { out = r.rewriter.Close(slices.Clip(out)) }) {
		return errors.New("rewrite a request: panic at its end")
	}
	r.usage = r.rewriter.Asked()
	r.scanner, r.rewriter = nil, nil
	if err := x.echo(wire.RequestBody, out, end); err != nil {
		return err
	}
	x.ask()
	return nil
}

// echo sends body back in pieces, with the end on the last only. Nothing is
// sent for an empty frame that is not the end.
func (x *exchange) echo(p wire.Phase, body []byte, end bool) error {
	for len(body) > maxPiece {
		x.reply.Streamed, x.reply.Body = true, body[:maxPiece]
		if err := x.send(p); err != nil {
			return err
		}
		body = body[maxPiece:]
	}
	if len(body) == 0 && !end {
		return nil
	}
	x.reply.Streamed, x.reply.Body, x.reply.EndOfStream = true, body, end
	return x.send(p)
}

package processor

import (
	"bytes"
	"strings"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// requestSide is what is known of the request.
type requestSide struct {
	seen  bool // something of it came
	ended bool // nothing of it is to come, or is of use
	head  requestHead
	wish  string // what it may ask of its trace
	// priority is how much it may say that it matters.
	priority int

	dialect dialect.Dialect
	hasBody bool
	// bodySeen: something of the body came.
	bodySeen bool
	// scanner reads the body; nil before the headers, after the end, and where
	// scanning panicked. It is the rewriter's where there is one.
	scanner  *dialect.Scanner
	rewriter *dialect.Rewriter
	asked    dialect.Request // what scanner had read when it was let go
	object   bool            // the body begins as a JSON object
	tooLong  bool            // asked has the beginning of the model's name only
	alias    string          // the model as asked for, where its servers got another name
	form     bool            // the body is read as a multipart form, and never edited
	prompt   dialect.Prompt  // as far as it was read before the decision
	// promptBytes is how much of the body the prompt takes, 0 where that is not
	// known whole.
	promptBytes int
	options     bool          // it has stream options of its own
	usage       dialect.Asked // what we asked for besides
	tokens      int           // of the prompt, as the decision estimates
	told        bool          // the meter knows what was asked

	subset    []string
	hasSubset bool

	decided  bool // where it goes was decided, or never will be
	rejected bool // we answered it ourselves
	// handedOn: what we replied has let the request go on to the next filter.
	handedOn bool

	// FULL_DUPLEX_STREAMED: held is what came while the reply to the headers
	// waits for the decision, counted how much of it the total of all streams has.
	// Invariant: 0 <= counted.
	holding bool
	held    []byte
	counted int64
}

// keepSubset copies the subset hint, which may come with any message.
func (r *requestSide) keepSubset(m *wire.Message) {
	r.hasSubset = true
	r.subset = r.subset[:0]
	for _, e := range m.Subset {
		r.subset = append(r.subset, strings.Clone(e))
	}
}

// onRequestHeaders answers at once, except in FULL_DUPLEX_STREAMED, where Envoy
// sends the body without waiting. With BUFFERED the body's reply can still set
// headers, so that the decision waits for it; otherwise it falls here, without
// a model where the body is to come: with STREAMED Envoy sends no body before
// this reply, and ignores headers set after it.
func (x *exchange) onRequestHeaders(m *wire.Message) error {
	if x.request.seen {
		x.count(countSpurious)
		return x.pass(m.Phase)
	}
	x.beginRequest(readRequestHead(m.Headers, x.cfg.SessionHeaders))
	x.request.wish, x.start.Wanted, x.request.priority = x.cfg.Trusted.wishes(m.Headers)
	x.start.Captured = captured(x.cfg.Capture, m.Headers)
	x.recordRequest(m)
	x.request.hasBody = !m.EndOfStream
	if x.observe {
		x.takeOver()
	}
	if m.EndOfStream {
		x.endScan()
	}
	if x.observe {
		if m.EndOfStream {
			x.request.ended = true
			x.ask()
		}
		return nil
	}
	switch {
	case m.EndOfStream:
		x.request.ended = true
	case x.requestMode == wire.ModeBuffered, x.requestMode == wire.ModeBufferedPartial:
		x.strip()
		return x.send(m.Phase)
	case x.requestMode == wire.ModeFullDuplex:
		x.request.holding = true
		return nil
	}
	return x.sendDecision(m.Phase)
}

// beginRequest takes the request's headers.
func (x *exchange) beginRequest(h requestHead) {
	r := &x.request
	r.seen = true
	r.head = h
	r.dialect = dialect.ForPath(h.path)
	r.asked = unasked(r.dialect)
	r.scanner = dialect.NewScanner(r.dialect, h.contentType)
	r.form = r.scanner.IsForm()
	if x.byPrefix() {
		r.scanner.KeepPrefix()
	}
	x.start.Method, x.start.Path = h.method, h.path
	if h.requestID != "" {
		x.start.RequestID = h.requestID
	}
	x.enter()
	x.labels.Operation = meter.Operation(h.path)
	x.show()
}

func (x *exchange) onRequestBody(m *wire.Message) error {
	x.withoutHeaders()
	x.request.bodySeen = true
	if x.recording != nil {
		x.recordRequestBody(m.Body)
	}
	if x.observe {
		x.observeRequest(m)
		return nil
	}
	switch x.requestMode {
	case wire.ModeFullDuplex:
		return x.duplexRequest(m)
	case wire.ModeBuffered, wire.ModeBufferedPartial:
		return x.bufferedRequest(m)
	}
	if x.request.ended {
		x.count(countAfterEnd)
		return x.send(m.Phase)
	}
	if err := x.send(m.Phase); err != nil {
		return err
	}
	x.observeRequest(m)
	return nil
}

// withoutHeaders begins a request whose headers are not sent to us: the body
// alone tells.
func (x *exchange) withoutHeaders() {
	if !x.request.seen {
		x.beginRequest(requestHead{})
		x.request.hasBody = true
	}
}

// observeRequest reads a request body that is not ours to decide by.
func (x *exchange) observeRequest(m *wire.Message) {
	if x.request.ended {
		x.count(countAfterEnd)
		return
	}
	x.scan(m.Body)
	if m.EndOfStream {
		x.request.ended = true
		x.endScan()
		x.ask()
	}
}

// bufferedRequest takes the one message that has the whole body, or with
// BUFFERED_PARTIAL as much of it as we get.
func (x *exchange) bufferedRequest(m *wire.Message) error {
	if x.request.ended {
		x.count(countAfterEnd)
		return x.send(m.Phase)
	}
	x.request.ended = true
	x.scan(m.Body)
	x.endScan()
	if e := x.edit(x.decide()); e != (dialect.Edit{}) {
		x.replaceBody(m.Body, e)
	}
	return x.sendDecided(m.Phase)
}

// replaceBody does e to the body. The length is ours to tell then, but with
// BUFFERED_PARTIAL Envoy drops it itself.
func (x *exchange) replaceBody(body []byte, e dialect.Edit) {
	rewritten := x.guard("rewrite", func() {
		b, asked := dialect.Rewrite(x.request.dialect, body, e)
		if !asked.Any() && bytes.Equal(b, body) {
			return
		}
		if asked.Any() {
			x.request.usage = asked
			x.narrow()
		}
		x.reply.HasBody, x.reply.Body = true, b
		if x.requestMode == wire.ModeBuffered {
			x.reply.Set = append(x.reply.Set, contentLength(len(b)))
		}
	})
	if !rewritten {
		x.request.alias = ""
	}
}

func (x *exchange) onRequestTrailers(m *wire.Message) error {
	if x.request.ended && x.request.decided {
		// The trailers of a BUFFERED body follow its message.
		return x.pass(m.Phase)
	}
	x.withoutHeaders()
	x.request.ended = true
	x.endScan()
	if x.observe {
		x.ask()
		return nil
	}
	switch {
	case x.request.holding:
		x.decideHeld()
		if err := x.release(false); err != nil || x.request.rejected {
			return err
		}
	case x.request.rewriter != nil:
		if err := x.flush(nil, false); err != nil {
			return err
		}
	case !x.request.decided:
		// Without a body message headers can't be set any more: only the
		// metadata and a rejection still count.
		x.decide()
		x.reply.Set, x.reply.Remove = x.reply.Set[:0], x.reply.Remove[:0]
		return x.sendDecided(m.Phase)
	}
	x.ask()
	return x.send(m.Phase)
}

// scan reads the next bytes of the request's body, as far as they are needed.
func (x *exchange) scan(body []byte) {
	r := &x.request
	if r.scanner == nil || len(body) == 0 || r.dialect == dialect.Unknown && r.scanner.ModelKnown() {
		return
	}
	if !x.guard("scan", func() { r.scanner.Write(body) }) {
		x.stopScan()
	}
}

// endScan ends the body for the scanner.
func (x *exchange) endScan() {
	r := &x.request
	if r.scanner == nil {
		return
	}
	if x.guard("scan", func() {
		r.scanner.Close()
		x.takeScan()
	}) {
		r.scanner = nil
		x.learn()
		return
	}
	x.stopScan()
}

// takeScan takes what the scanner has read.
func (x *exchange) takeScan() {
	r := &x.request
	r.asked, r.object, r.options = r.scanner.Request(), r.scanner.IsObject(), r.scanner.HasOptions()
	r.tooLong = r.scanner.ModelTooLong()
	if !r.decided {
		r.prompt = r.scanner.Prompt()
	}
	if r.ended {
		r.promptBytes = int(r.scanner.PromptBytes())
	}
}

// stopScan gives up on a request that could not be read: it passes as it is,
// and Envoy's own policy finds an endpoint.
func (x *exchange) stopScan() {
	x.request.scanner = nil
	x.request.decided = true
}

// readSoFar brings asked up to what the scanner has read.
func (x *exchange) readSoFar() {
	r := &x.request
	if r.scanner == nil {
		return
	}
	if x.guard("scan", x.takeScan) {
		x.learn()
		return
	}
	x.stopScan()
}

// strip has the client's copies of control headers removed, once, and its baggage
// and its wish for a content coding where that is to be.
func (x *exchange) strip() {
	x.plainOnly()
	if x.cfg.DropBaggage && x.request.head.baggage {
		x.reply.Remove = append(x.reply.Remove, baggageHeader)
		x.request.head.baggage = false
	}
	x.reply.Remove = append(x.reply.Remove, x.request.head.control...)
	x.request.head.control = nil
}

// learn makes the model a label, once it is known.
func (x *exchange) learn() {
	if x.labels.Model != x.request.asked.Model {
		x.labels.Model = x.request.asked.Model
		x.show()
	}
}

// ask tells the meter what was asked, as far as it was read: once, at the end
// of the request or when the response begins.
func (x *exchange) ask() {
	if !x.request.seen || x.request.told {
		return
	}
	x.readSoFar()
	x.request.scanner = nil
	x.request.told = true
	asked := x.request.asked
	x.measure(func(r *meter.Meter) { r.Ask(asked) })
}

package meter

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/coding"
	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/sse"
)

// How a response is taken apart (definitions 1), and what is counted of it.

const (
	maxModel     = dialect.MaxModel
	maxID        = 256
	maxErrorType = 128
	// maxSpeculative has room for the summary, not for each of its steps.
	maxSpeculative = 1 << 10
)

// response is the response so far.
type response struct {
	headers Opt[time.Duration]
	status  int
	stream  bool // the content type is text/event-stream
	// coding takes the content coding off; nil where there is none, or nothing
	// to read.
	coding *coding.Decoder
	// opaque: the content coding can't be taken off, or not from here on, so
	// that neither events nor JSON can be read.
	opaque bool

	// At most one of parser and body is set: a stream has events, an answer of
	// a known dialect a body.
	parser *sse.Parser
	body   *dialect.Body
	// bodyRead: the body was a whole one of its dialect, or is in a form of it
	// that has nothing to read.
	bodyRead bool
	facts    dialect.Facts

	frames, shared, bytes, events, skipped int64
	// lastFrame is when the last byte arrived, inFrame how many events were
	// completed by that frame.
	lastFrame time.Duration
	inFrame   int
}

// Headers tells of the response's head.
func (m *Meter) Headers(at time.Duration, status int, contentType, contentEncoding string) {
	m.mustBeOpen()
	r := &m.response
	r.headers, r.status = Some(at), status
	r.stream = isEventStream(contentType)
	r.closeCoding()
	r.parser, r.body, r.opaque = nil, nil, false
	r.bodyRead = m.known && m.dialect.Plain(mediaType(contentType))
	if r.stream || m.known && !r.bodyRead {
		r.openCoding(contentEncoding)
	}
	switch {
	case r.stream:
		r.parser = sse.New(m.options.MaxEvent)
	case m.known && !r.bodyRead:
		r.body = dialect.NewBody(m.dialect)
	}
}

func isEventStream(contentType string) bool {
	return strings.EqualFold(mediaType(contentType), "text/event-stream")
}

// mediaType returns a content type without its parameters.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(t)
}

// Observe takes response body bytes, cut anywhere, and keeps no reference to
// frame. It returns what was reached for the first time.
func (m *Meter) Observe(at time.Duration, frame []byte) Milestone {
	m.mustBeOpen()
	if len(frame) == 0 {
		return 0
	}
	r := &m.response
	r.frames++
	r.bytes += int64(len(frame))
	r.lastFrame, r.inFrame = at, 0
	reached := m.firstByte(at)
	switch {
	case r.coding != nil:
		reached |= m.decode(at, frame)
	case !r.opaque:
		reached |= m.read(at, frame)
	}
	return reached
}

// read takes the next bytes of the body, without its content coding.
func (m *Meter) read(at time.Duration, plain []byte) (reached Milestone) {
	r := &m.response
	switch {
	case r.parser != nil:
		r.parser.Push(plain)
		for e, ok := r.parser.Next(); ok; e, ok = r.parser.Next() {
			reached |= m.event(at, e)
		}
		r.facts.Reset()
	case r.body != nil:
		r.body.Write(plain)
	}
	return reached
}

// event takes one event.
func (m *Meter) event(at time.Duration, e sse.Event) Milestone {
	r := &m.response
	r.events++
	if r.inFrame++; r.inFrame == 2 {
		r.shared++
	}
	reached := m.firstEvent(at)
	if r.events == 1 && m.dialect == dialect.Unknown {
		m.setDialect(dialect.Discover(e.Type, e.Data))
	}
	if !m.known {
		return reached
	}
	f := &r.facts
	m.dialect.Read(f, e.Type, e.Data)
	if f.Skipped || f.Unread > 0 {
		r.skipped++
		m.choices.unread = m.choices.unread || f.Unread > 0
	}
	m.identify(f)
	if f.Error.Set {
		m.fail(at, f)
	}
	if f.Done && !m.done {
		m.done = true
		reached |= ReachedDone
	}
	growth := m.takeUsage(at, f)
	for i := range f.Choices {
		reached |= m.choice(at, &f.Choices[i], growth, len(e.Data))
	}
	return reached
}

// choice takes what an event says of one choice.
func (m *Meter) choice(at time.Duration, f *dialect.Choice, growth int64, size int) Milestone {
	var reached Milestone
	c := m.choices.get(f.Index)
	if f.Role {
		m.firstRole(at)
	}
	if tokens, kind, ok := m.evidence(c, f, growth); ok {
		reached = m.firstToken(at, kind)
		c.resumed = c.finish.OK && m.dialect == dialect.Transcription
		gap, later := c.evidenceAt(at)
		m.clocks.longest(gap, later)
		m.instant(c, at, tokens)
		m.markChunk(at, f.Index, c, tokens, size, gap)
	}
	if len(f.Finish) > 0 {
		c.finishes(at, f.Finish)
	}
	c.named = true
	return reached
}

// finish takes what only a clean end brings: the event that lacks its blank
// line, and the body that is now whole.
func (m *Meter) finish(c Cause) {
	r := &m.response
	m.endCoding()
	if r.parser != nil && c == CauseEnd && !r.opaque {
		// Its last byte came with the last frame.
		if e, ok := r.parser.Finish(); ok && (dialect.IsDone(e.Data) || dialect.Whole(e.Data)) {
			m.event(r.lastFrame, e)
			r.facts.Reset()
		}
	}
	if r.body == nil {
		return
	}
	f := r.body.Facts()
	if f.Skipped {
		return
	}
	r.bodyRead = f.Answer || len(f.Choices)+f.Unread > 0
	m.identify(f)
	if f.Error.Set {
		m.fail(r.lastFrame, f)
	}
	m.takeFinal(r.lastFrame, &f.Usage)
	for i := range f.Choices {
		if c := m.choices.get(f.Choices[i].Index); len(f.Choices[i].Finish) > 0 {
			c.finishes(r.lastFrame, f.Choices[i].Finish)
		}
	}
}

// identify takes what names the response, the first time it is there.
func (m *Meter) identify(f *dialect.Facts) {
	if !m.model.OK && len(f.Model) > 0 {
		m.model = Some(f.Model.Decode(maxModel))
	}
	if !m.responseID.OK && len(f.ID) > 0 {
		m.responseID = Some(f.ID.Decode(maxID))
	}
	if f.Metrics.Present {
		m.metrics = serverMetrics(&f.Metrics)
	}
}

// fail takes an error. Beside a status that says so it only names its type.
func (m *Meter) fail(at time.Duration, f *dialect.Facts) {
	m.failed = true
	m.mark(Mark{At: at, Kind: MarkError})
	if m.errorType != "" {
		return
	}
	m.errorType = f.Error.Type.Decode(maxErrorType)
	if m.errorType == "" {
		m.errorType = f.Error.Code.Decode(maxErrorType)
	}
}

// speculativeDecoding copies a value that is as small as the server's; one of
// another size is none.
func speculativeDecoding(value []byte) string {
	if len(value) > maxSpeculative || !json.Valid(value) {
		return ""
	}
	return string(value)
}

func serverMetrics(f *dialect.Metrics) *ServerMetrics {
	opt := func(v dialect.Float) Opt[float64] { return Opt[float64]{V: v.V, OK: v.OK} }
	return &ServerMetrics{
		TimeToFirstTokenMS: opt(f.TimeToFirstTokenMS),
		GenerationTimeMS:   opt(f.GenerationTimeMS),
		QueueTimeMS:        opt(f.QueueTimeMS),
		MeanITLMS:          opt(f.MeanITLMS),
		TokensPerSecond:    opt(f.TokensPerSecond),

		SpeculativeDecoding: speculativeDecoding(f.SpeculativeDecoding),
	}
}

// Package meter makes the record of an exchange from its facts and their
// times. It is pure: no clock, no I/O, no OpenTelemetry, no gRPC.
//
//	m := meter.New(start, options)
//	m.Ask(request)                       // when the request's body was read
//	m.Headers(at, status, contentType, contentEncoding)
//	m.Observe(at, frame)                 // any bytes, cut anywhere
//	m.Snapshot(at)                       // the exchange so far
//	record := m.Close(at, cause)         // exactly once
//
// Times are offsets from the exchange's origin. For any cutting of the same
// frames the record is equal, Frames and SharedFrames apart.
//
// The rules are those of docs/definitions.md, each in one place:
//
//	1 framing         package sse; what is counted: response.go; content codings: coding.go
//	2 token evidence  evidence.go, echo.go, calls.go; which usage is growth: usage.go
//	3 clocks          clocks.go
//	  ITL, chunk gap  gaps.go
//	  TPOT            tpot.go
//	  stall           stall.go
//	  no first token  outcome.go
//	4 tokens          tokens.go; the estimate: evidence.go
//	5 outcome         outcome.go; its class: class.go
//
// What an event says, before any rule is applied, is package dialect's. The
// marks that become span events are in marks.go, the timeline in timeline.go.
package meter

import (
	"net/http"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Start is what is known of an exchange when it begins.
type Start struct {
	At        time.Time // the origin
	Source    StartSource
	RequestID string
	Method    string
	Path      string // as sent; the query string is dropped
	Trace     Trace
	Captured  []Captured
	Wanted    Thresholds
}

// Options tune a Meter; the zero value takes the defaults.
type Options struct {
	// GapBounds are the upper bounds of the buckets of Record.ITL and
	// Record.Gap, ascending; none: one bucket. They are not copied.
	GapBounds []time.Duration
	// MaxEvent is the number of bytes that one event may take; 0: 1 MiB.
	MaxEvent int
	// MaxChunks is the number of chunk marks kept; 0: 64.
	MaxChunks int
}

// Meter measures one exchange. It is not safe for concurrent use.
//
// A stream costs at most 16 KiB with up to 8 choices, however many tokens it
// has, beyond the event that is being read; each further choice half a KiB.
type Meter struct {
	start   Start
	options Options
	// known: the dialect is read. A request of another method than POST, such
	// as a browser's preflight, is none of a dialect's exchanges.
	dialect dialect.Dialect
	known   bool
	asked   dialect.Request
	route   Route
	sent    Opt[int64]
	drain   Opt[time.Duration]
	closed  bool

	response response
	clocks   clocks
	choices  choices
	usage    usage
	gaps     gaps
	tape     *tape // nil before the first mark

	model, responseID Opt[string]
	metrics           *ServerMetrics
	done              bool // the end mark came
	failed            bool // an error stood in the stream, or in the JSON of a 200
	errorType         string
}

// New returns a Meter for the exchange that begins with s.
func New(s Start, o Options) *Meter {
	s.Path, _, _ = strings.Cut(s.Path, "?")
	m := &Meter{start: s, options: o}
	m.gaps.bounds = o.GapBounds
	m.setDialect(dialect.ForPath(s.Path))
	return m
}

func (m *Meter) setDialect(d dialect.Dialect) {
	m.dialect = d
	m.known = d.Known() && m.posted()
}

func (m *Meter) posted() bool { return m.start.Method == "" || m.start.Method == http.MethodPost }

// Ask tells what the request asked for; at most once, before Headers where the
// request was seen at all.
func (m *Meter) Ask(r dialect.Request) {
	m.mustBeOpen()
	m.asked = r
	if r.Dialect != dialect.Unknown {
		m.setDialect(r.Dialect)
	}
}

// Routed tells where the exchange goes; it may be called again as more is known.
func (m *Meter) Routed(r Route) {
	m.mustBeOpen()
	m.route = r
}

// Delivered tells what Envoy says of the response's way to the client: the bytes
// of the body that were sent, and how long after the server's last byte the last
// one was.
func (m *Meter) Delivered(sent Opt[int64], drain Opt[time.Duration]) {
	m.mustBeOpen()
	m.sent, m.drain = sent, drain
}

// Snapshot returns the record as it would be if the exchange were cut at at;
// it leaves the meter as it was. The outcome is empty.
func (m *Meter) Snapshot(at time.Duration) *Record {
	m.mustBeOpen()
	r := m.record(at)
	r.Marks, r.MarksThinned = m.marks(r)
	return r
}

// Close ends the exchange and returns its record. Further calls of any method
// panic: closing twice is a fault of the caller.
func (m *Meter) Close(at time.Duration, c Cause) *Record {
	m.mustBeOpen()
	m.closed = true
	m.finish(c)
	r := m.record(at)
	r.Outcome = m.outcome(c)
	r.NoFirstToken = m.noFirstToken(r)
	if r.Class() == ClassDone {
		r.TPOT = m.tpot(r)
	}
	r.Marks, r.MarksThinned = m.marks(r)
	m.tape.release()
	m.tape = nil
	return r
}

func (m *Meter) mustBeOpen() {
	if m.closed {
		panic("meter: used after Close") //nolint:forbidigo // violated invariant
	}
}

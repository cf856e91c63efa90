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
package meter

import (
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
}

// Options tune a Meter; the zero value takes the defaults.
type Options struct {
	// GapBounds are the upper bounds of the buckets of Record.ITL and
	// Record.Gap, ascending.
	GapBounds []time.Duration
	// MaxEvent is the number of bytes that one event may take; 0: 1 MiB.
	MaxEvent int
	// MaxChunks is the number of chunk marks kept; 0: 64.
	MaxChunks int
}

// Meter measures one exchange. It is not safe for concurrent use.
type Meter struct{}

// New returns a Meter for the exchange that begins with s.
func New(s Start, o Options) *Meter { return &Meter{} }

// Ask tells what the request asked for; at most once, before Headers where the
// request was seen at all.
func (m *Meter) Ask(r dialect.Request) {}

// Headers tells of the response's head.
func (m *Meter) Headers(at time.Duration, status int, contentType, contentEncoding string) {}

// Observe takes response body bytes, cut anywhere, and keeps no reference to
// frame. It returns what was reached for the first time.
func (m *Meter) Observe(at time.Duration, frame []byte) Milestone { return 0 }

// Routed tells where the exchange goes; it may be called again as more is known.
func (m *Meter) Routed(r Route) {}

// Snapshot returns the record as it would be if the exchange were cut at at;
// it leaves the meter as it was. The outcome is empty.
func (m *Meter) Snapshot(at time.Duration) *Record { return &Record{} }

// Close ends the exchange and returns its record. Further calls of any method
// panic: closing twice is a fault of the caller.
func (m *Meter) Close(at time.Duration, c Cause) *Record { return &Record{} }

package processor

import (
	"iter"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// Recording takes one exchange as it passes, to write it down. Its methods are
// called one at a time, in the order of the exchange; they must not block, and
// keep no reference to what they are given. The last call is End or Drop.
type Recording interface {
	// Request begins it; path has no query string.
	Request(method, path string, headers iter.Seq2[string, string])
	// RequestBody takes what the client sent, as far as it was read.
	RequestBody(part []byte)
	// Response and Frame take what the server sent, at offsets from the origin.
	Response(at time.Duration, status int, headers iter.Seq2[string, string])
	Frame(at time.Duration, part []byte)
	// End takes the exchange's record, which no one changes any more.
	End(c meter.Cause, r *meter.Record)
	// Drop ends an exchange that has no record.
	Drop()
}

// recordRequest begins a recording, where the exchange is to have one.
func (x *exchange) recordRequest(m *wire.Message) {
	if x.s.cfg.Record == nil || x.foreign {
		return
	}
	h := &x.request.head
	x.guard("record", func() {
		x.recording = x.s.cfg.Record()
		if x.recording != nil {
			x.recording.Request(h.method, h.path, pairs(m.Headers))
		}
	})
}

// recordRequestBody takes what the meter is told of.
func (x *exchange) recordRequestBody(part []byte) {
	if !x.request.ended && !x.request.told {
		x.toRecording(func(r Recording) { r.RequestBody(part) })
	}
}

// endRecording ends the recording; r is nil where the exchange has no record of
// ours.
func (x *exchange) endRecording(c meter.Cause, r *meter.Record) {
	x.toRecording(func(to Recording) {
		if r == nil {
			to.Drop()
			return
		}
		to.End(c, r)
	})
	x.recording = nil
}

// toRecording runs f on the recording, which has to be there. One that panicked
// is let go.
func (x *exchange) toRecording(f func(Recording)) {
	if !x.guard("record", func() { f(x.recording) }) {
		x.guard("record", x.recording.Drop)
		x.recording = nil
	}
}

// pairs yields headers by name and value.
func pairs(headers []wire.Header) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, h := range headers {
			if !yield(h.Name, h.Value) {
				return
			}
		}
	}
}

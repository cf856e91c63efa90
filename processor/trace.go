package processor

import (
	"encoding/hex"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

const (
	traceparentHeader = "traceparent"
	tracestateHeader  = "tracestate"
	baggageHeader     = "baggage"
	traceIDHeader     = "x-trace-id"
)

// traced tells that t has ids; without them there is nothing to hand on.
func traced(t *meter.Trace) bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

func traceID(t *meter.Trace) string { return hex.EncodeToString(t.TraceID[:]) }

// traceparent is t in the W3C form, version 00, with the flag that the server is
// to see.
func traceparent(t *meter.Trace) string {
	flags := "00"
	if t.UpstreamSampled {
		flags = "01"
	}
	return "00-" + traceID(t) + "-" + hex.EncodeToString(t.SpanID[:]) + "-" + flags
}

// handOn adds to r what makes the server's span a child of ours. A client's
// tracestate does not outlive its traceparent.
func handOn(r *wire.Reply, t *meter.Trace, clientState bool) {
	if !traced(t) {
		return
	}
	r.Set = append(r.Set, wire.Header{Name: traceparentHeader, Value: traceparent(t)})
	switch {
	case t.State != "":
		r.Set = append(r.Set, wire.Header{Name: tracestateHeader, Value: t.State})
	case clientState:
		r.Remove = append(r.Remove, tracestateHeader)
	}
}

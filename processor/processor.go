// Package processor is the ext_proc service: phases in, replies out. It owns
// the life of an exchange.
package processor

import (
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// Telemetry takes what exchanges tell the outside. Its methods are called where
// the exchange is worked on and must not block: what can't be taken is
// dropped and counted there. They are safe for concurrent use.
type Telemetry interface {
	// Begin makes the exchange's ids and the head decision.
	Begin(b Begin) meter.Trace
	// Routed records a decision where an exchange goes.
	Routed(r meter.Route, l meter.Labels)
	// First records a milestone when it happens.
	First(m meter.Milestone, at time.Duration, l meter.Labels)
	// End takes the record, which no one changes any more.
	End(r *meter.Record)
	// Overhead records how long a message of the named phase took us, from
	// having it to having sent the reply or, where none is due, to being done.
	Overhead(phase string, d time.Duration)
	// Unmatched counts an access-log entry that settled no exchange, by why.
	Unmatched(reason string)
	// Unseen counts an exchange that the access log tells of and that nothing of
	// ours has seen.
	Unseen()
	// Count adds one to the counter of what went wrong inside: "panic",
	// "spurious_message" and the like.
	Count(event string)
}

// Begin is what the head decision needs.
type Begin = meter.Begin

// Router decides and counts what is in flight.
type Router interface {
	Decide(r route.Request) route.Decision
	// WantsPrefix tells whether some pool picks by the prompt's prefix, so that it
	// is worth being waited for.
	WantsPrefix() bool
	// Begin and End bracket an exchange at its endpoint; Prefilled, between the
	// two, says that its first token came: its End has no tokens.
	Begin(l route.Load)
	Prefilled(l route.Load)
	End(l route.Load)
	// Expect counts an exchange that another stream is to count, until Arrived
	// says that the stream is here, or a while has passed.
	Expect(span [8]byte, l route.Load)
	Arrived(span [8]byte)
	// Done says what an exchange showed of its endpoint, once.
	Done(r route.Result)
}

// Journal keeps finished records for lookup.
type Journal interface {
	Add(r *meter.Record)
}

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// enginePhase is a part of the server's work, by its own account.
type enginePhase struct {
	name        string
	start, took time.Duration
}

// enginePhases returns the phases that the server tells of. It tells how long
// each took and not when, so they are laid around the first event, which leaves
// with the engine's first token: prefill ends there and decode begins. An answer
// that is no stream comes when all is done: decode ends with its first byte. None
// is cut where it does not fit into the exchange.
func enginePhases(r *meter.Record) []enginePhase {
	m := r.ServerMetrics
	if m == nil {
		return nil
	}
	queue, prefill, decode := took(m.QueueTimeMS), took(m.TimeToFirstTokenMS), took(m.GenerationTimeMS)
	first := r.FirstEvent
	if !r.Stream || !first.OK {
		if first = r.FirstByte; !first.OK {
			return nil
		}
		first.V -= decode.V
	}
	phases := make([]enginePhase, 0, 3)
	for _, p := range []struct {
		name  string
		start time.Duration
		took  meter.Opt[time.Duration]
	}{
		{"queue", first.V - prefill.V - queue.V, queue},
		{"prefill", first.V - prefill.V, prefill},
		{"decode", first.V, decode},
	} {
		if p.took.OK {
			phases = append(phases, enginePhase{p.name, p.start, p.took.V})
		}
	}
	return phases
}

// took is a time that the server tells, absent where it is none.
func took(ms meter.Opt[float64]) meter.Opt[time.Duration] {
	// No phase takes a day, and what does not fit a Duration must not wrap.
	if !ms.OK || !(ms.V >= 0 && ms.V <= 24*time.Hour.Seconds()*1e3) {
		return meter.Opt[time.Duration]{}
	}
	return meter.Some(time.Duration(ms.V * float64(time.Millisecond)))
}

func (m *spanMaker) makeEngine(r *meter.Record, parent trace.SpanContext) {
	ctx := trace.ContextWithSpanContext(context.Background(), parent)
	for _, p := range enginePhases(r) {
		start := r.Start.Add(p.start)
		_, span := m.tracer.Start(ctx, p.name, trace.WithTimestamp(start), trace.WithAttributes(keySynthetic.Bool(true)))
		span.End(trace.WithTimestamp(start.Add(p.took)))
	}
}

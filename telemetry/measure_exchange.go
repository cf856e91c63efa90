package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/inferspan/inferspan/processor/meter"
)

// Routed records the decision where an exchange goes, when it fell: streams that
// only decide make no record.
func (t *Telemetry) Routed(r meter.Route, l meter.Labels) {
	set, _ := t.labels.get(l.Operation, l.Model, l.Pool, success(l.Status))
	o := set.with(variant{routeReason: r.Reason})
	t.instruments.routeDecisions.Add(context.Background(), 1, o.add...)
	t.instruments.routeDuration.Record(context.Background(), r.Duration.Seconds(), o.record...)
}

// measureExchange records what is known at the end beyond times and tokens.
func (t *Telemetry) measureExchange(r *meter.Record, set *labelSet) {
	i, none := t.instruments, context.Background()
	if r.Stream {
		set.tokens.end(r)
	}
	if r.Stalls > 0 {
		i.stalls.Add(none, int64(r.Stalls), set.plain.add...)
	}
	if s := r.ServerMetrics; s != nil {
		recordMS(i.engineQueue, s.QueueTimeMS, set.plain.record)
		recordMS(i.enginePrefill, s.TimeToFirstTokenMS, set.plain.record)
		recordMS(i.engineDecode, s.GenerationTimeMS, set.plain.record)
	}
	if r.Route.Attempts > 0 {
		i.attempts.Add(none, int64(r.Route.Attempts), set.with(variant{routeReason: r.Route.Reason}).add...)
	}
	for _, f := range r.Finish {
		reason := finishNone
		switch {
		case f.OK:
			var folded string
			if reason, folded = t.labels.finishes.get(f.V, true); folded != "" {
				i.folded(folded)
			}
		case cut(r):
			reason = finishCut
		}
		i.choices.Add(none, 1, set.with(variant{finish: reason}).add...)
	}
}

// cut tells whether choices without a finish reason were cut off.
func cut(r *meter.Record) bool {
	return r.Class() == meter.ClassFailed || r.Class() == meter.ClassCancelled
}

func recordMS(h metric.Float64Histogram, v meter.Opt[float64], options []metric.RecordOption) {
	if v.OK && v.V >= 0 {
		h.Record(context.Background(), v.V*time.Millisecond.Seconds(), options...)
	}
}

package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"github.com/inferspan/inferspan/processor/meter"
)

// SLO is what exchanges promise: to stay within the thresholds.
type SLO struct {
	Name string
	// Operation, Model (as asked) and Pool say of which exchanges; "": of any.
	Operation, Model, Pool string
	Thresholds
	// Target is the part of them that is to keep the promise, from 0 to 1.
	Target float64
}

// ownSLO is the SLO of exchanges that no other covers and whose client, a trusted
// one, has thresholds of its own for them.
const ownSLO = "request"

// sloList are the SLOs that are judged.
type sloList []SLO

func (l sloList) validate() error {
	for i, s := range l {
		switch {
		case s.Name == "":
			return fmt.Errorf("slo %d has no name", i)
		case slices.ContainsFunc(l[:i], func(o SLO) bool { return o.Name == s.Name }):
			return fmt.Errorf("there are two slos %q", s.Name)
		case s.Name == ownSLO:
			return fmt.Errorf("no slo may be named %q, which is that of a client's own thresholds", s.Name)
		case s.TTFT <= 0 && s.TPOT <= 0 && s.Duration <= 0:
			return fmt.Errorf("slo %q has no threshold", s.Name)
		}
	}
	return nil
}

func (s *SLO) covers(r *meter.Record) bool {
	return (s.Operation == "" || s.Operation == r.Operation()) &&
		(s.Model == "" || s.Model == r.RequestModel.V) &&
		(s.Pool == "" || s.Pool == r.Route.Pool)
}

// judge tells whether the exchange kept the promise, and whether it counts: by
// its class, as docs/definitions.md has it, and where it is done only if one of
// the thresholds could be measured.
func (s *SLO) judge(r *meter.Record) (met, counted bool) {
	beyond, measured := exceeded(s.limits(r), r)
	switch r.Class() {
	case meter.ClassDone:
		return !beyond, measured
	case meter.ClassCancelled:
		return false, beyond
	case meter.ClassFailed:
		return false, true
	case meter.ClassRejected:
		return false, r.Status == http.StatusTooManyRequests || r.Status >= http.StatusInternalServerError
	}
	return false, false
}

// limits are what r is held to: what its client wants, where that is trusted,
// and where it says nothing what the SLO says.
func (s *SLO) limits(r *meter.Record) Thresholds {
	return Thresholds{
		TTFT:     cmp.Or(r.Wanted.TTFT, s.TTFT),
		TPOT:     cmp.Or(r.Wanted.TPOT, s.TPOT),
		Duration: cmp.Or(r.Wanted.Duration, s.Duration),
	}
}

// covering yields the SLOs that cover r, and where none does and its client wants
// something of it, one that has no thresholds of its own.
func (l sloList) covering(r *meter.Record) iter.Seq[*SLO] {
	return func(yield func(*SLO) bool) {
		covered := false
		for i := range l {
			if !l[i].covers(r) {
				continue
			}
			if covered = true; !yield(&l[i]) {
				return
			}
		}
		if !covered && r.Wanted != (Thresholds{}) {
			yield(&SLO{Name: ownSLO})
		}
	}
}

// missed tells whether r missed any.
func (l sloList) missed(r *meter.Record) bool {
	for s := range l.covering(r) {
		if met, counted := s.judge(r); counted && !met {
			return true
		}
	}
	return false
}

// withThresholds returns m with the thresholds of l among its buckets, so that
// the share within one can be read from the histogram.
func (l sloList) withThresholds(m Metric, of func(Thresholds) float64) Metric {
	buckets := slices.Clone(m.Buckets)
	for _, s := range l {
		if t := of(s.Thresholds); t > 0 {
			buckets = append(buckets, t)
		}
	}
	slices.Sort(buckets)
	m.Buckets = slices.Compact(buckets)
	return m
}

func ttftOf(t Thresholds) float64     { return t.TTFT.Seconds() }
func tpotOf(t Thresholds) float64     { return t.TPOT.Seconds() }
func durationOf(t Thresholds) float64 { return t.Duration.Seconds() }

// observeTargets shows the targets of the SLOs that there are.
func observeTargets(mt metric.Meter, g *guard, slos func() sloList) error {
	_, err := mt.Float64ObservableGauge(mSLOTarget.Name,
		metric.WithUnit(mSLOTarget.Unit), metric.WithDescription(mSLOTarget.Description),
		metric.WithFloat64Callback(g.float64(func(_ context.Context, o metric.Float64Observer) error {
			for _, s := range slos() {
				o.Observe(s.Target, metric.WithAttributes(keySLOName.String(s.Name)))
			}
			return nil
		})))
	if err != nil {
		return fmt.Errorf("observing the targets of SLOs: %w", err)
	}
	return nil
}

// measureSLOs counts the exchange under each SLO that covers it.
func (t *Telemetry) measureSLOs(r *meter.Record, set *labelSet, slos sloList) {
	for s := range slos.covering(r) {
		if met, counted := s.judge(r); counted {
			t.instruments.countSLO(set.with(variant{slo: s.Name, met: met}).add)
		}
	}
}

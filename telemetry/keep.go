package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// KeepConfig is the part of the configuration under trace.keep: which spans go
// out.
type KeepConfig struct {
	// Share is the part of the exchanges sampled at the head that is kept, from 0
	// to 1, uniform by trace id; absent: 1.
	Share meter.Opt[float64]
	// Always names what is kept whatever the head and the share say; nil: all of
	// KeepPolicies.
	Always []string
	// Slow are the times beyond which an exchange is slow.
	Slow Thresholds
}

// Thresholds are times that an exchange is to stay within; 0: any is good.
type Thresholds = meter.Thresholds

// Why a span was kept.
const (
	keepAll   = "all"
	keepShare = "share"

	keepForced    = "forced"
	keepFailed    = "failed"
	keepSLOMissed = "slo_missed"
	keepSlow      = "slow"
	keepStalled   = "stalled"
	keepCancelled = "cancelled"
)

// KeepPolicies returns what trace.keep.always may name, in the order in which
// the first that applies is a span's reason.
func KeepPolicies() []string {
	return []string{keepForced, keepFailed, keepSLOMissed, keepSlow, keepStalled, keepCancelled}
}

func (c KeepConfig) validate() error {
	var all error
	if s := c.Share; s.OK && !(s.V >= 0 && s.V <= 1) {
		all = fmt.Errorf("trace.keep.share is %v, allowed is 0 to 1", s.V)
	}
	for _, p := range c.Always {
		all = errors.Join(all, oneOf("trace.keep.always", p, KeepPolicies()...))
	}
	return all
}

// keeper decides which spans go out. It is safe for concurrent use.
type keeper struct {
	share  float64
	always []string // in the order of KeepPolicies
	slow   Thresholds
	slos   sloList
}

func newKeeper(c KeepConfig, slos sloList) *keeper {
	k := &keeper{share: 1, slow: c.Slow, slos: slos}
	if c.Share.OK {
		k.share = c.Share.V
	}
	for _, p := range KeepPolicies() {
		if c.Always == nil || slices.Contains(c.Always, p) {
			k.always = append(k.always, p)
		}
	}
	return k
}

// verdict is what is done with an exchange's span. The zero value drops it.
type verdict struct {
	keep        bool
	reason      string
	probability float64 // with the reason share
	// detailed: there is something to explain, for which all chunks are shown.
	detailed bool
}

// traits are what the policies ask of an exchange.
type traits struct{ forced, failed, sloMissed, slow, stalled, cancelled bool }

func (k *keeper) traits(r *meter.Record) traits {
	slow, _ := exceeded(k.slow, r)
	return traits{
		forced:    r.Trace.Forced,
		failed:    failed(r),
		sloMissed: k.slos.missed(r),
		slow:      slow,
		stalled:   r.Stalls > 0,
		cancelled: r.Class() == meter.ClassCancelled,
	}
}

func (t traits) match(policy string) bool {
	switch policy {
	case keepForced:
		return t.forced
	case keepFailed:
		return t.failed
	case keepSLOMissed:
		return t.sloMissed
	case keepSlow:
		return t.slow
	case keepStalled:
		return t.stalled
	case keepCancelled:
		return t.cancelled
	}
	return false
}

// judge decides at the exchange's end. A policy's reason goes before that of the
// share, so that who counts spans by their probability counts it as one.
func (k *keeper) judge(r *meter.Record) verdict {
	t := k.traits(r)
	v := verdict{detailed: t.forced || t.failed || t.slow || t.stalled}
	for _, p := range k.always {
		if t.match(p) {
			v.keep, v.reason = true, p
			return v
		}
	}
	if !r.Trace.Sampled || !k.shared(&r.Trace) {
		return v
	}
	v.keep, v.reason = true, keepAll
	if k.share < 1 {
		v.reason, v.probability = keepShare, k.share
	}
	return v
}

// sure tells whether the span will be kept whatever is still to come.
func (k *keeper) sure(tr *meter.Trace) bool {
	return tr.Sampled && k.shared(tr) || tr.Forced && slices.Contains(k.always, keepForced)
}

// shared tells whether the trace is in the share. All replicas agree; and the
// ids are mixed, so that the answer has nothing to do with that of samplers
// that compare them.
func (k *keeper) shared(tr *meter.Trace) bool {
	if k.share >= 1 {
		return true
	}
	x := binary.BigEndian.Uint64(tr.TraceID[:8]) ^ binary.BigEndian.Uint64(tr.TraceID[8:])
	// The finalizer of SplitMix64.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	const bits = 53 // that a float64 holds exactly
	return float64(x>>(64-bits))/(1<<bits) < k.share
}

// failed tells whether the exchange failed, by a fault of the server's side:
// our own answers count where they say that.
func failed(r *meter.Record) bool {
	switch r.Class() {
	case meter.ClassFailed:
		return true
	case meter.ClassRejected:
		return r.Status >= http.StatusInternalServerError || r.Status == http.StatusTooManyRequests
	}
	return false
}

// exceeded tells whether r is beyond one of the thresholds, and whether it
// could be measured by any. Who still waited for a first token had waited at
// least until the end.
func exceeded(t Thresholds, r *meter.Record) (beyond, measured bool) {
	check := func(limit time.Duration, v meter.Opt[time.Duration]) {
		if limit > 0 && v.OK {
			measured = true
			beyond = beyond || v.V > limit
		}
	}
	ttft := r.FirstToken
	if !ttft.OK && r.NoFirstToken != "" {
		ttft = meter.Some(r.End)
	}
	check(t.TTFT, ttft)
	check(t.TPOT, meanTPOT(r))
	check(t.Duration, meter.Some(r.End))
	return beyond, measured
}

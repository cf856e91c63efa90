package telemetry

import (
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

var exemplarPattern = regexp.MustCompile(`# \{.*trace_id`)

// keepRecord is a record with nothing to keep it for, but for what change does.
func keepRecord(change func(*meter.Record)) *meter.Record {
	r := richRecord()
	if change != nil {
		change(r)
	}
	return r
}

var slowAll = Thresholds{TTFT: 100 * ms, TPOT: 100 * ms, Duration: time.Second}

func outcomeOf(o meter.Outcome, status int) func(*meter.Record) {
	return func(r *meter.Record) { r.Outcome, r.Status = o, status }
}

func TestKeep(t *testing.T) {
	slow := func(r *meter.Record) { r.FirstToken = meter.Some(101 * ms) }
	none := KeepConfig{Share: meter.Some(0.), Slow: slowAll}
	for name, c := range map[string]struct {
		config   KeepConfig
		change   func(*meter.Record)
		reason   string // "": not kept
		detailed bool
	}{
		"all":                 {KeepConfig{}, nil, "all", false},
		"none":                {none, nil, "", false},
		"failed":              {none, outcomeOf(meter.UpstreamReset, 200), "failed", true},
		"failed by status":    {none, outcomeOf(meter.HTTPError, 503), "failed", true},
		"refused":             {none, outcomeOf(meter.HTTPError, 404), "", false},
		"rejected, no server": {none, outcomeOf(meter.Rejected, 503), "failed", true},
		"rejected, no model":  {none, outcomeOf(meter.Rejected, 404), "", false},
		"cancelled":           {none, outcomeOf(meter.ClientCancelled, 200), "cancelled", false},
		"unknown":             {none, outcomeOf(meter.Lost, 200), "", false},
		"stalled":             {none, func(r *meter.Record) { r.Stalls = 1 }, "stalled", true},
		"slow to begin":       {none, slow, "slow", true},
		"at the threshold":    {none, func(r *meter.Record) { r.FirstToken = meter.Some(100 * ms) }, "", false},
		"never began": {none, func(r *meter.Record) {
			r.Outcome, r.NoFirstToken, r.FirstToken = meter.Lost, meter.NoTokenCancelled, meter.Opt[time.Duration]{}
		}, "slow", true},
		"slow tokens":            {none, func(r *meter.Record) { r.TPOT = []meter.TPOTSample{{Value: 101 * ms}} }, "slow", true},
		"long":                   {none, func(r *meter.Record) { r.End = time.Second + 1 }, "slow", true},
		"forced":                 {none, func(r *meter.Record) { r.Trace.Forced = true; r.Outcome = meter.UpstreamReset }, "forced", true},
		"of an unsampled parent": {KeepConfig{}, func(r *meter.Record) { r.Trace.Sampled = false }, "", false},
		"unsampled and failed": {KeepConfig{}, func(r *meter.Record) {
			r.Trace.Sampled, r.Outcome = false, meter.Timeout
		}, "failed", true},
		"a reason before the share": {KeepConfig{Slow: slowAll}, slow, "slow", true},
		"slow, no policy":           {KeepConfig{Slow: slowAll, Always: []string{"failed"}}, slow, "all", true},
		"no policy":                 {KeepConfig{Share: meter.Some(0.), Always: []string{}}, outcomeOf(meter.Timeout, 200), "", true},
	} {
		v := newKeeper(c.config, nil).judge(keepRecord(c.change))
		if v.keep != (c.reason != "") || v.reason != c.reason || v.detailed != c.detailed || v.probability != 0 {
			t.Errorf("%s: %+v, want the reason %q, detailed %v", name, v, c.reason, c.detailed)
		}
	}
}

// TestShare: it is as large as it says, nested, and known before the end.
func TestShare(t *testing.T) {
	const n = 20000
	tenth, half := newKeeper(KeepConfig{Share: meter.Some(.1)}, nil), newKeeper(KeepConfig{Share: meter.Some(.5)}, nil)
	kept := 0
	for range n {
		r := richRecord()
		r.Trace.TraceID = newTraceID()
		v := tenth.judge(r)
		if v.keep != tenth.sure(&r.Trace) {
			t.Fatalf("%x: kept %v, foretold %v", r.Trace.TraceID, v.keep, !v.keep)
		}
		if !v.keep {
			continue
		}
		kept++
		if v.reason != keepShare || v.probability != .1 || !half.judge(r).keep {
			t.Fatalf("%+v, and half: %+v", v, half.judge(r))
		}
	}
	// Six standard deviations of a fair draw.
	if limit := 6 * math.Sqrt(n*.1*.9); math.Abs(float64(kept)-n*.1) > limit {
		t.Errorf("%d of %d kept, want a tenth", kept, n)
	}
}

func TestKeepConfig_Invalid(t *testing.T) {
	for _, k := range []KeepConfig{
		{Share: meter.Some(1.1)}, {Share: meter.Some(-.1)}, {Share: meter.Some(math.NaN())}, {Always: []string{"good"}},
	} {
		c := quiet()
		c.Trace.Keep = k
		if _, err := New(t.Context(), c); err == nil {
			t.Errorf("%+v is accepted", k)
		}
	}
}

// TestSpanSaysWhyItWasKept: with the probability where it is one of a share.
func TestSpanSaysWhyItWasKept(t *testing.T) {
	c := quiet()
	c.Trace.Keep = KeepConfig{Share: meter.Some(.999999), Slow: slowAll}
	spans := spansOf(t, c, richRecord())
	s := exchangeSpan(t, spans)
	reason, _ := value(s.Attributes(), keyKeepReason)
	p, _ := value(s.Attributes(), keyKeepProbability)
	if reason.AsString() != keepShare || p.AsFloat64() != .999999 {
		t.Errorf("%s with %v", reason.AsString(), p.AsFloat64())
	}
	s = exchangeSpan(t, spansOf(t, c, keepRecord(func(r *meter.Record) { r.End = 2 * time.Second })))
	reason, _ = value(s.Attributes(), keyKeepReason)
	if _, ok := value(s.Attributes(), keyKeepProbability); ok || reason.AsString() != keepSlow {
		t.Errorf("%s, probability %v", reason.AsString(), ok)
	}
}

// TestNoExemplarOfADroppedSpan: neither of the end nor of a milestone before.
func TestNoExemplarOfADroppedSpan(t *testing.T) {
	for share, want := range map[float64]bool{0: false, 1: true} {
		c := quiet()
		c.Trace.Keep.Share = meter.Some(share)
		x := &keepingExporter{}
		tel := open(t, c, x)
		play(tel, richRecord())
		worked(tel)
		page := scrape(t, tel, openMetrics)
		shut(t, tel)
		if got := exemplarPattern.MatchString(page); got != want || (len(x.spans) > 0) != want {
			t.Errorf("share %v: exemplars %v, %d spans", share, got, len(x.spans))
		}
	}
}

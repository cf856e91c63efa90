package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/inferspan/inferspan/processor/meter"
)

// First records the milestones that were reached at at. They are recorded when
// they happen: the end of a long stream comes minutes later.
func (t *Telemetry) First(m meter.Milestone, at time.Duration, l meter.Labels) {
	// A generated token is as good a proof that a server has the model as the
	// status, where that was not told.
	proven := success(l.Status) || l.Status == 0 && m&meter.ReachedFirstToken != 0
	set, _ := t.labels.get(l.Operation, l.Model, l.Pool, proven)
	ctx, seconds := context.Background(), at.Seconds()
	if m&meter.ReachedFirstByte != 0 {
		t.instruments.firstByte.Record(ctx, seconds, set.plain.record...)
	}
	if m&meter.ReachedFirstEvent != 0 {
		t.instruments.firstEvent.Record(ctx, seconds, set.plain.record...)
	}
	if m&meter.ReachedFirstAnswer != 0 {
		t.instruments.firstAnswer.Record(ctx, seconds, set.plain.record...)
	}
	if m&meter.ReachedFirstToken != 0 {
		if l.Trace != nil && t.export != nil && t.rules.Load().keep.sure(l.Trace) {
			ctx = exemplarContext(l.Trace)
		}
		t.instruments.ttft.Record(ctx, seconds, set.plain.record...)
		t.endpointFirst(&l, at)
	}
}

// measure records the metrics of an exchange's end. ctx names its span where
// that goes out.
func (t *Telemetry) measure(ctx context.Context, r *meter.Record, by *rules) {
	i, none := t.instruments, context.Background()
	set, folded := t.labels.get(r.Operation(), r.RequestModel.V, r.Route.Pool, success(r.Status))
	if folded != "" {
		i.folded(folded)
	}
	fault, folded := t.labels.errors.get(errorType(r), true)
	if folded != "" {
		i.folded(folded)
	}
	outcome := string(r.Outcome)
	i.duration.Record(ctx, r.End.Seconds(), set.with(variant{outcome: outcome, errorType: fault}).record...)
	headers := by.headers.label(r.Captured, success(r.Status), i.folded)
	i.requests.Add(none, 1, set.with(variant{outcome: outcome, status: r.Status, stream: streamOf(r), headers: headers}).add...)
	if r.NoFirstToken != "" && !r.FirstToken.OK {
		i.noFirst.Record(none, r.End.Seconds(), set.with(variant{reason: string(r.NoFirstToken)}).record...)
	}
	if !r.ITLVoid {
		recordGaps(ctx, i.itl, set, r.ITL)
	}
	recordGaps(none, i.gap, set, r.Gap)
	if r.Class() == meter.ClassDone {
		for _, s := range r.TPOT {
			i.tpot.Record(none, s.Value.Seconds(), set.counted(s.Assumed).record...)
		}
	}
	if r.Skipped > 0 {
		i.skipped.Add(none, r.Skipped, set.plain.add...)
	}
	i.client.record(ctx, r, set, fault)
	t.measureTokens(r, set, headers)
	t.measureExchange(r, set)
	t.endpointEnd(r)
	t.measureSLOs(r, set, by.slos)
}

func (t *Telemetry) measureTokens(r *meter.Record, set *labelSet, headers string) {
	i, none := t.instruments, context.Background()
	output := set.with(variant{source: string(r.OutputSource), headers: headers}).add
	if r.OutputTokens.OK {
		i.output.Add(none, r.OutputTokens.V, output...)
	}
	// What the server alone knows comes from its usage, whatever counted the
	// generated tokens.
	source := r.OutputSource
	if source != meter.SourceContinuous {
		source = meter.SourceUsage
	}
	reported := set.with(variant{source: string(source), headers: headers}).add
	addCount(i.input, r.PromptTokens, reported)
	addCount(i.cached, r.CachedTokens, reported)
	addCount(i.reasoning, r.ReasoningTokens, reported)

	if !cut(r) {
		return
	}
	outcome := string(r.Outcome)
	addCount(i.wasted, r.OutputTokens, set.with(variant{outcome: outcome, stage: stageDecode, headers: headers}).add)
	if r.PromptTokens.OK {
		computed := max(0, r.PromptTokens.V-r.CachedTokens.V)
		i.wasted.Add(none, computed, set.with(variant{outcome: outcome, stage: stagePrefill, headers: headers}).add...)
	}
}

func addCount(c metric.Int64Counter, n meter.Opt[int64], options []metric.AddOption) {
	if n.OK {
		c.Add(context.Background(), n.V, options...)
	}
}

func (s *labelSet) counted(assumed bool) *options {
	if assumed {
		return s.assumed
	}
	return s.exact
}

func streamOf(r *meter.Record) streaming {
	if r.Stream {
		return streamYes
	}
	return streamNo
}

// recordGaps records every sample of g.
func recordGaps(ctx context.Context, m gapMetric, set *labelSet, g meter.Gaps) {
	m.add(ctx, set.exact, g.Exact)
	m.add(ctx, set.assumed, g.Assumed)
}

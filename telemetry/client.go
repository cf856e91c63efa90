package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// clientMetrics are the GenAI conventions' client metrics in the form that the
// configuration names; what the form does not have is nil. They take tokens only
// as the server reported them.
type clientMetrics struct {
	duration, firstChunk             metric.Float64Histogram
	perChunk                         gapMetric
	input, output, cached, reasoning metric.Int64Counter   // genai-0.1
	inputSize, outputSize            metric.Int64Histogram // genai-0.1
	tokens                           metric.Int64Histogram // 1.41
}

// newClientMetrics returns nil where the form is off.
func newClientMetrics(m *maker, form string, gaps *gapStore) *clientMetrics {
	c := &clientMetrics{}
	switch form {
	case clientGenAI:
		c.duration, c.firstChunk = m.histogram(mClientDuration), m.histogram(mClientFirstChunk)
		c.input, c.output = m.counter(mClientInput), m.counter(mClientOutput)
		c.cached, c.reasoning = m.counter(mClientCached), m.counter(mClientReasoning)
		c.inputSize, c.outputSize = m.sizes(mClientInputSize), m.sizes(mClientOutputSize)
	case client141:
		c.duration, c.firstChunk = m.histogram(mClient141Duration), m.histogram(mClient141FirstChunk)
		c.tokens = m.sizes(mClient141Tokens)
	default:
		return nil
	}
	if gaps != nil {
		c.perChunk = gaps.perChunk
	} else {
		c.perChunk = sdkGaps{m.histogram(perChunkMetric(form))}
	}
	return c
}

// perChunkMetric is the time between chunks in the form, which has one.
func perChunkMetric(form string) Metric {
	if form == client141 {
		return mClient141PerChunk
	}
	return mClientPerChunk
}

// record takes an exchange at its end; fault is its error.type as a label. ctx
// names its span where that goes out.
func (c *clientMetrics) record(ctx context.Context, r *meter.Record, set *labelSet, fault string) {
	// The conventions' names for other operations are still on the move.
	if op := r.Operation(); c == nil || op != "chat" && op != "text_completion" {
		return
	}
	c.duration.Record(ctx, r.End.Seconds(), set.with(variant{errorType: fault}).record...)
	if r.Stream && r.FirstToken.OK {
		c.firstChunk.Record(ctx, r.FirstToken.V.Seconds(), set.plain.record...)
	}
	c.perChunk.add(ctx, set.plain, r.Gap.Exact)
	c.perChunk.add(ctx, set.plain, r.Gap.Assumed)

	output := r.OutputTokens
	if r.OutputSource != meter.SourceUsage && r.OutputSource != meter.SourceContinuous {
		output = meter.Opt[int64]{} // counted by us
	}
	if c.tokens != nil {
		record(c.tokens, r.PromptTokens, set.with(variant{tokenType: "input"}))
		record(c.tokens, output, set.with(variant{tokenType: "output"}))
		return
	}
	// A prompt of messages can have images and sound in it; what a completion is
	// asked for is text, and so is what models of vLLM generate.
	asked := modalityUnknown
	if r.Dialect == dialect.Completions {
		asked = modalityText
	}
	count(c.input, r.PromptTokens, set, asked)
	count(c.cached, r.CachedTokens, set, asked)
	count(c.output, output, set, modalityText)
	count(c.reasoning, r.ReasoningTokens, set, modalityText)
	record(c.inputSize, r.PromptTokens, set.plain)
	record(c.outputSize, output, set.plain)
}

func record(h metric.Int64Histogram, n meter.Opt[int64], o *options) {
	if n.OK {
		h.Record(context.Background(), n.V, o.record...)
	}
}

// count adds n, and 0 of the modality unknown where it was not reported.
func count(c metric.Int64Counter, n meter.Opt[int64], set *labelSet, modality string) {
	if !n.OK {
		n.V, modality = 0, modalityUnknown
	}
	c.Add(context.Background(), n.V, set.with(variant{modality: modality}).add...)
}

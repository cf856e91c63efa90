package telemetry

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

type traceKey struct{}

// withTrace returns a context in which a span starts with the ids that the
// exchange was given at its beginning.
func withTrace(tr *meter.Trace) context.Context {
	ctx := context.WithValue(context.Background(), traceKey{}, tr)
	if tr.ParentID == [8]byte{} {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: tr.TraceID, SpanID: tr.ParentID, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}

func traceOf(ctx context.Context) *meter.Trace {
	tr, _ := ctx.Value(traceKey{}).(*meter.Trace)
	return tr
}

// givenIDs returns the ids that the context carries, new ones for children.
type givenIDs struct{}

var _ sdktrace.IDGenerator = givenIDs{}

func (givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if tr := traceOf(ctx); tr != nil {
		return tr.TraceID, tr.SpanID
	}
	return newTraceID(), newSpanID()
}

func (givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if tr := traceOf(ctx); tr != nil {
		return tr.SpanID
	}
	return newSpanID()
}

// givenDecision samples everything: spans are made only of what is kept.
type givenDecision struct{}

var _ sdktrace.Sampler = givenDecision{}

func (givenDecision) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	state := trace.SpanContextFromContext(p.ParentContext).TraceState()
	if tr := traceOf(p.ParentContext); tr != nil {
		// It was parsed once already; what is no tracestate is not handed on.
		state, _ = trace.ParseTraceState(tr.State)
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: state}
}

func (givenDecision) Description() string { return "AsDecidedAtTheHead" }

// exemplarContext returns a context by which an exemplar names the exchange's
// span.
func exemplarContext(tr *meter.Trace) context.Context {
	return trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: tr.TraceID, SpanID: tr.SpanID, TraceFlags: trace.FlagsSampled,
	}))
}

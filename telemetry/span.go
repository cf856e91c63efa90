package telemetry

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// spanMaker makes spans of records. It is not safe for concurrent use.
type spanMaker struct {
	tracer trace.Tracer
	ended  *endedSpans
	// maxEvents is the SDK's limit: beyond it the SDK forgets a span's oldest
	// events, which are the milestones. Negative: no limit.
	maxEvents int
	onSpan    bool       // events go onto the span
	log       *eventLog  // nil: they go into no log
	room      attributes // for a span's, of which the SDK keeps a copy
}

// endedSpans collects what the SDK's spans end as.
type endedSpans struct{ spans []sdktrace.ReadOnlySpan }

var _ sdktrace.SpanProcessor = (*endedSpans)(nil)

func (*endedSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (e *endedSpans) OnEnd(s sdktrace.ReadOnlySpan)                 { e.spans = append(e.spans, s) }
func (*endedSpans) Shutdown(context.Context) error                  { return nil }
func (*endedSpans) ForceFlush(context.Context) error                { return nil }

func newSpanMaker(c TraceConfig, res *resource.Resource, version string) *spanMaker {
	limits := sdktrace.NewSpanLimits()
	m := &spanMaker{ended: &endedSpans{}, maxEvents: limits.EventCountLimit, onSpan: c.Events != eventsLog}
	if c.Events != eventsSpan {
		m.log = newEventLog(res, version)
	}
	m.tracer = sdktrace.NewTracerProvider(
		sdktrace.WithResource(res),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithIDGenerator(givenIDs{}),
		sdktrace.WithSampler(givenDecision{}),
		sdktrace.WithSpanProcessor(m.ended),
	).Tracer(scopeName, trace.WithInstrumentationVersion(version))
	return m
}

// spans makes the spans of the batch's records, and the log records of their
// events.
func (m *spanMaker) spans(batch []entry) []sdktrace.ReadOnlySpan {
	m.ended.spans = make([]sdktrace.ReadOnlySpan, 0, 2*len(batch))
	for _, e := range batch {
		m.make(e)
	}
	return m.ended.spans
}

func (m *spanMaker) make(e entry) {
	r := e.record
	operation, model := r.Operation(), clean(r.RequestModel.V)
	events, thinned, dropped := m.events(e)
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(r.Start),
		trace.WithAttributes(m.attributes(e, operation, model, thinned, dropped)...),
	}
	if link := linkOf(&r.Trace); link.SpanContext.IsValid() {
		options = append(options, trace.WithLinks(link))
	}
	ctx, span := m.tracer.Start(withTrace(&r.Trace), spanName(operation, model), options...)
	m.emit(ctx, span, r.Start, events)
	if errorType(r) != "" {
		span.SetStatus(codes.Error, string(r.Outcome))
	}
	if routed(r) {
		m.makeRoute(r, span.SpanContext())
	}
	if e.rules.show.engineSpans {
		m.makeEngine(r, span.SpanContext())
	}
	span.End(trace.WithTimestamp(r.Start.Add(r.End)))
}

// routed tells whether we decided where the exchange goes.
func routed(r *meter.Record) bool { return r.Route.Policy != "" || r.Route.Duration > 0 }

func (m *spanMaker) makeRoute(r *meter.Record, parent trace.SpanContext) {
	start := r.Start.Add(r.Route.Start)
	decision := r.Route
	decision.Served, decision.Attempts = "", 0 // known only after it
	_, span := m.tracer.Start(trace.ContextWithSpanContext(context.Background(), parent), "route",
		trace.WithTimestamp(start), trace.WithAttributes(appendRoute(nil, decision)...))
	span.End(trace.WithTimestamp(start.Add(r.Route.Duration)))
}

func linkOf(tr *meter.Trace) trace.Link {
	// What was read from the client is a valid state.
	state, _ := trace.ParseTraceState(tr.LinkState)
	return trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: tr.LinkTraceID, SpanID: tr.LinkSpanID, Remote: true,
		TraceFlags: trace.TraceFlags(0).WithSampled(tr.LinkSampled), TraceState: state,
	})}
}

// errorType returns what went wrong, "" where nothing did that is an error:
// by the classes of docs/definitions.md.
func errorType(r *meter.Record) string {
	switch r.Class() {
	case meter.ClassRejected:
		if r.Route.Reason != "" {
			return r.Route.Reason
		}
	case meter.ClassFailed, meter.ClassRefused:
		if r.Outcome == meter.HTTPError {
			return strconv.Itoa(r.Status)
		}
		if r.ErrorType != "" {
			return clean(r.ErrorType)
		}
	default:
		return ""
	}
	return string(r.Outcome)
}

// attributes returns the span's attributes, in the catalogue's order; they are
// good until the next span's.
func (m *spanMaker) attributes(e entry, operation, model string, thinned, dropped int64) []attribute.KeyValue {
	r := e.record
	a := m.room[:0]
	a = append(a, startAttributes(operation, model)...)
	a.text(keyOutcome, string(r.Outcome))
	a.text(keyErrorType, errorType(r))
	if r.Status > 0 {
		a = append(a, keyHTTPStatus.Int(r.Status))
	}
	a.text(keyRequestID, r.RequestID)
	a.text(keyResponseID, r.ResponseID.V)
	a.text(keyResponseModel, r.Model.V)
	if reasons := finishReasons(r); len(reasons) > 0 {
		a = append(a, keyFinishReasons.StringSlice(reasons))
	}
	if r.Asked.Stream {
		a = append(a, keyRequestStream.Bool(true))
	}
	if r.Asked.MaxTokens > 0 {
		a = append(a, keyRequestMaxTokens.Int64(r.Asked.MaxTokens))
	}
	if r.Asked.N > 1 {
		a = append(a, keyRequestChoices.Int64(r.Asked.N))
	}
	a.seconds(keyTimeToFirstChunk, r.FirstToken)
	a.count(keyUsageInput, r.PromptTokens)
	if r.OutputSource != meter.SourceEstimate {
		a.count(keyUsageOutput, r.OutputTokens)
	}
	a.count(keyUsageCacheRead, r.CachedTokens)
	a.count(keyUsageReasoning, r.ReasoningTokens)
	a.text(keyUsageSource, string(r.OutputSource))
	a.count(keyOutputTokens, r.OutputTokens)
	a.text(keyFirstTokenKind, string(r.FirstTokenKind))
	a.text(keyStartSource, string(r.StartSource))
	a.seconds(keyFirstByte, r.FirstByte)
	a.seconds(keyFirstEvent, r.FirstEvent)
	a.seconds(keyFirstToken, r.FirstToken)
	a.seconds(keyFirstAnswer, r.FirstAnswer)
	a.seconds(keyTPOT, meanTPOT(r))
	a = attributes(appendRoute(a, r.Route))
	a.count(keySentBytes, r.Sent)
	a.seconds(keyClientDrain, r.ClientDrain)
	a.text(keyKeepReason, e.reason)
	if e.probability > 0 {
		a = append(a, keyKeepProbability.Float64(e.probability))
	}
	if s := r.ServerMetrics; s != nil {
		a.milliseconds(keyEngineQueue, s.QueueTimeMS)
		a.milliseconds(keyEnginePrefill, s.TimeToFirstTokenMS)
		a.milliseconds(keyEngineDecode, s.GenerationTimeMS)
	}
	for _, c := range r.Captured {
		a.text(attribute.Key(c.Attribute), c.Value)
	}
	if e.detail() >= detailTimeline && len(r.Timeline.Gaps100us) > 0 {
		a = append(a,
			keyTimelineGaps.IntSlice(ints(r.Timeline.Gaps100us)),
			keyTimelineTokens.IntSlice(ints(r.Timeline.Tokens)),
			keyTimelineStride.Int(r.Timeline.Stride))
	}
	if thinned > 0 {
		a = append(a, keyEventsThinned.Int64(thinned))
	}
	if dropped > 0 {
		a = append(a, keyEventsDropped.Int64(dropped))
	}
	m.room = a
	return a
}

func appendRoute(kvs []attribute.KeyValue, r meter.Route) []attribute.KeyValue {
	a := attributes(kvs)
	a.text(keyPool, r.Pool)
	a.text(keyEndpoint, r.Endpoint)
	a.text(keyServed, r.Served)
	if host, port, err := net.SplitHostPort(cmp.Or(r.Served, r.Endpoint)); err == nil {
		a.text(keyServerAddress, host)
		if n, err := strconv.Atoi(port); err == nil {
			a = append(a, keyServerPort.Int(n))
		}
	}
	a.text(keyRoutePolicy, r.Policy)
	a.text(keyRouteReason, r.Reason)
	if r.Policy != "" && r.Endpoint != "" {
		a = append(a, keyRouteScore.Float64(r.Score))
	}
	a.count(keyPredictedCached, r.PredictedCachedTokens)
	if len(r.Candidates) > 0 {
		a = append(a, keyRouteCandidates.StringSlice(r.Candidates[:min(len(r.Candidates), 8)]))
	}
	if r.Attempts > 0 {
		a = append(a, keyAttempts.Int(r.Attempts))
	}
	return a
}

// finishReasons has one entry a choice, error for one that was cut before its
// reason came. It is nil where no choice has a reason and none was cut.
func finishReasons(r *meter.Record) []string {
	given := func(f meter.Opt[string]) bool { return f.OK }
	if !cut(r) && !slices.ContainsFunc(r.Finish, given) {
		return nil
	}
	reasons := make([]string, 0, len(r.Finish))
	for _, f := range r.Finish {
		if f.OK {
			reasons = append(reasons, clean(f.V))
		} else {
			reasons = append(reasons, finishCut)
		}
	}
	return reasons
}

// meanTPOT is one number for the span: the mean over the choices.
func meanTPOT(r *meter.Record) meter.Opt[time.Duration] {
	if len(r.TPOT) == 0 || r.Class() != meter.ClassDone {
		return meter.Opt[time.Duration]{}
	}
	var sum time.Duration
	for _, s := range r.TPOT {
		sum += s.Value
	}
	return meter.Some(sum / time.Duration(len(r.TPOT)))
}

// attributes appends what is there and leaves out what is absent.
type attributes []attribute.KeyValue

func (a *attributes) text(k attribute.Key, v string) {
	if v != "" {
		*a = append(*a, k.String(clean(v)))
	}
}

func (a *attributes) count(k attribute.Key, v meter.Opt[int64]) {
	if v.OK {
		*a = append(*a, k.Int64(v.V))
	}
}

func (a *attributes) seconds(k attribute.Key, v meter.Opt[time.Duration]) {
	if v.OK {
		*a = append(*a, k.Float64(v.V.Seconds()))
	}
}

func (a *attributes) milliseconds(k attribute.Key, v meter.Opt[float64]) {
	if v.OK {
		*a = append(*a, k.Float64(v.V/1e3))
	}
}

func ints(s []int32) []int {
	out := make([]int, len(s))
	for i, v := range s {
		out[i] = int(v)
	}
	return out
}

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are the catalogue's metrics as the SDK's instruments.
type instruments struct {
	duration, ttft, tpot                            metric.Float64Histogram
	itl, gap                                        gapMetric
	firstByte, firstEvent, firstAnswer, noFirst     metric.Float64Histogram
	overheadOf                                      func(phase string) recorder
	requests, output, input, cached, reasoning      metric.Int64Counter
	wasted, faults, queuedC, sentC, droppedC, folds metric.Int64Counter
	skipped, unmatched, unseen                      metric.Int64Counter
	eventsSentC, eventsDroppedC                     metric.Int64Counter
	sloRequests                                     metric.Int64Counter
	stalls, choices, routeDecisions, attempts       metric.Int64Counter
	engineQueue, enginePrefill, engineDecode        metric.Float64Histogram
	routeDuration                                   metric.Float64Histogram
	client                                          *clientMetrics // nil: there are none

	drops map[string][]metric.AddOption
}

// maker makes instruments of catalogue entries and keeps the first fault.
type maker struct {
	meter metric.Meter
	err   error
}

func (m *maker) histogram(c Metric) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description),
		metric.WithExplicitBucketBoundaries(c.Buckets...))
	m.check(c, err)
	return h
}

func (m *maker) sizes(c Metric) metric.Int64Histogram {
	h, err := m.meter.Int64Histogram(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description),
		metric.WithExplicitBucketBoundaries(c.Buckets...))
	m.check(c, err)
	return h
}

func (m *maker) counter(c Metric) metric.Int64Counter {
	i, err := m.meter.Int64Counter(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description))
	m.check(c, err)
	return i
}

func (m *maker) upDown(c Metric) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description))
	m.check(c, err)
	return i
}

func (m *maker) observedCounter(c Metric) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description))
	m.check(c, err)
	return i
}

func (m *maker) observedGauge(c Metric) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description))
	m.check(c, err)
	return i
}

func (m *maker) observedFloat(c Metric) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(c.Name, metric.WithUnit(c.Unit), metric.WithDescription(c.Description))
	m.check(c, err)
	return i
}

func (m *maker) check(c Metric, err error) {
	if err != nil {
		m.err = errors.Join(m.err, fmt.Errorf("making the instrument %s: %w", c.Name, err))
	}
}

// oneIf is the value of a gauge that answers yes or no.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// newInstruments makes the instruments. gaps holds the histograms of gaps; nil:
// they are the SDK's too.
func newInstruments(mt metric.Meter, gaps *gapStore, c Config) (*instruments, error) {
	m, slos := &maker{meter: mt}, sloList(c.SLOs)
	i := &instruments{
		duration:  m.histogram(slos.withThresholds(mDuration, durationOf)),
		ttft:      m.histogram(slos.withThresholds(mTTFT, ttftOf)),
		tpot:      m.histogram(slos.withThresholds(mTPOT, tpotOf)),
		firstByte: m.histogram(mFirstByte), firstEvent: m.histogram(mFirstEvent),
		firstAnswer: m.histogram(mFirstAnswer), noFirst: m.histogram(mNoFirstToken),
		requests: m.counter(mRequests),
		output:   m.counter(mOutputTokens), input: m.counter(mInputTokens),
		cached: m.counter(mCachedTokens), reasoning: m.counter(mReasoningTokens),
		wasted: m.counter(mWasted), faults: m.counter(mFaults),
		queuedC: m.counter(mQueued), sentC: m.counter(mSent), droppedC: m.counter(mDropped),
		folds: m.counter(mFolded), skipped: m.counter(mSkipped),
		unmatched:   m.counter(mUnmatched),
		unseen:      m.counter(mUnseen),
		eventsSentC: m.counter(mEventsSent), eventsDroppedC: m.counter(mEventsDropped),
		drops: make(map[string][]metric.AddOption),
	}
	i.stalls, i.choices = m.counter(mStalls), m.counter(mChoices)
	i.routeDecisions, i.attempts = m.counter(mRouteDecisions), m.counter(mAttempts)
	i.engineQueue, i.enginePrefill = m.histogram(mEngineQueue), m.histogram(mEnginePrefill)
	i.engineDecode, i.routeDuration = m.histogram(mEngineDecode), m.histogram(mRouteDuration)
	if gaps != nil {
		i.itl, i.gap = gaps.itl, gaps.gap
		i.overheadOf = ownOverhead(gaps.overhead)
	} else {
		i.itl, i.gap = sdkGaps{m.histogram(mITL)}, sdkGaps{m.histogram(mGap)}
		i.overheadOf = sdkOverhead(m.histogram(mOverhead))
	}
	i.client = newClientMetrics(m, c.ClientMetrics, gaps)
	i.sloRequests = m.counter(mSLORequests)
	info, err := mt.Int64Gauge(mBuildInfo.Name, metric.WithDescription(mBuildInfo.Description))
	m.check(mBuildInfo, err)
	if m.err != nil {
		return nil, m.err
	}
	info.Record(context.Background(), 1, metric.WithAttributes(
		keyVersion.String(c.Version), keyGoVersion.String(runtime.Version())))
	for _, reason := range []string{dropQueueFull, dropFailed, dropRejected, dropShutdown} {
		i.drops[reason] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(keyReason.String(reason)))}
	}
	return i, nil
}

// showExport makes the series of the export appear before anything happens, so
// that the first drop is a change and not a beginning.
func (i *instruments) showExport() {
	i.queued(0)
	i.sent(0)
	i.eventsSent(0)
	for reason := range i.drops {
		i.dropped(0, reason)
		i.eventsDropped(0, reason)
	}
}

func (i *instruments) queued(n int) { i.queuedC.Add(context.Background(), int64(n)) }
func (i *instruments) sent(n int)   { i.sentC.Add(context.Background(), int64(n)) }

func (i *instruments) dropped(n int, reason string) {
	i.droppedC.Add(context.Background(), int64(n), i.drops[reason]...)
}

func (i *instruments) eventsSent(n int) { i.eventsSentC.Add(context.Background(), int64(n)) }

func (i *instruments) eventsDropped(n int, reason string) {
	i.eventsDroppedC.Add(context.Background(), int64(n), i.drops[reason]...)
}

// recorder takes the times of one phase.
type recorder func(time.Duration)

// ownOverhead makes the recorders of h, which cost a fraction of the SDK's.
func ownOverhead(h *gapHistogram) func(phase string) recorder {
	return func(phase string) recorder {
		s := h.seriesOf(attribute.NewSet(keyPhase.String(phase)))
		return func(d time.Duration) { h.record(s, d) }
	}
}

// sdkOverhead is ownOverhead with an instrument of the SDK, for aggregations that
// are the SDK's alone.
func sdkOverhead(h metric.Float64Histogram) func(phase string) recorder {
	return func(phase string) recorder {
		o := newOptions(keyPhase.String(phase))
		return func(d time.Duration) { h.Record(context.Background(), d.Seconds(), o.record...) }
	}
}

func (i *instruments) countSLO(options []metric.AddOption) {
	i.sloRequests.Add(context.Background(), 1, options...)
}

func (i *instruments) folded(reason string) {
	i.folds.Add(context.Background(), 1, metric.WithAttributes(keyReason.String(reason)))
}

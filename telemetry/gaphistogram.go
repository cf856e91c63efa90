package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// gapMetric takes the gaps of exchanges. It is safe for concurrent use.
type gapMetric interface {
	// add takes all samples of buckets. The span of ctx, where it has one that
	// is sampled, becomes the exemplar of each of them.
	add(ctx context.Context, o *options, buckets []meter.GapBucket)
}

// gapHistogram is a histogram that takes the buckets of a record as they are.
// The SDK's takes samples one by one, which for a stream of a thousand tokens
// costs more than all other work on it.
type gapHistogram struct {
	metric    Metric
	bounds    []time.Duration
	limit     int // of series, the one of the surplus included
	exemplars bool

	mu     sync.Mutex
	series []*gapSeries // in the order of their beginning; Invariant: len(series) <= limit
	index  map[attribute.Distinct]*gapSeries
}

var _ gapMetric = (*gapHistogram)(nil)

// gapSeries is what one set of attributes came to since the beginning.
type gapSeries struct {
	attributes attribute.Set
	gapTotals
	exemplars []gapExemplar // the last of each bucket; nil: none yet
}

// gapTotals are sums that only grow.
type gapTotals struct {
	counts []uint64
	count  uint64
	// The sum of gaps, in whole seconds and the rest: ten thousand live streams
	// would take a sum in nanoseconds past 64 bits within eleven days.
	seconds int64
	rest    time.Duration // Invariant: below a second
}

type gapExemplar struct {
	at    time.Time // zero: none
	value time.Duration
	span  trace.SpanContext
}

// overflowSet is what the specification names a surplus of series.
var overflowSet = attribute.NewSet(attribute.Bool("otel.metric.overflow", true))

func newGapHistogram(m Metric, limit int, exemplars bool) *gapHistogram {
	return &gapHistogram{
		metric: m, bounds: durations(m.Buckets), limit: limit, exemplars: exemplars,
		index: make(map[attribute.Distinct]*gapSeries),
	}
}

func (h *gapHistogram) add(ctx context.Context, o *options, buckets []meter.GapBucket) {
	span := trace.SpanContextFromContext(ctx)
	named := h.exemplars && span.IsSampled()
	h.mu.Lock()
	defer h.mu.Unlock()
	var s *gapSeries
	for _, b := range buckets {
		if b.Count <= 0 {
			continue
		}
		if s == nil {
			s = h.of(o.set)
		}
		mean := b.Sum / time.Duration(b.Count)
		i, _ := slices.BinarySearch(h.bounds, mean)
		s.counts[i] += uint64(b.Count)
		s.gapTotals.add(uint64(b.Count), b.Sum)
		if named {
			if s.exemplars == nil {
				s.exemplars = make([]gapExemplar, len(s.counts))
			}
			s.exemplars[i] = gapExemplar{at: time.Now(), value: mean, span: span}
		}
	}
}

// seriesOf returns the series of set, for record.
func (h *gapHistogram) seriesOf(set attribute.Set) *gapSeries {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(set)
}

// record takes one sample, which names no span.
func (h *gapHistogram) record(s *gapSeries, d time.Duration) {
	i, _ := slices.BinarySearch(h.bounds, d)
	h.mu.Lock()
	s.counts[i]++
	s.gapTotals.add(1, d)
	h.mu.Unlock()
}

// add adds n samples of sum in all.
func (t *gapTotals) add(n uint64, sum time.Duration) {
	t.count += n
	t.rest += sum
	t.seconds += int64(t.rest / time.Second)
	t.rest %= time.Second
}

// of returns the series of set, that of the surplus where there is no room.
func (h *gapHistogram) of(set attribute.Set) *gapSeries {
	s, ok := h.index[set.Equivalent()]
	if ok {
		return s
	}
	if len(h.series) >= h.limit-1 {
		set = overflowSet
		if s, ok := h.index[set.Equivalent()]; ok {
			return s
		}
	}
	s = &gapSeries{attributes: set, gapTotals: gapTotals{counts: make([]uint64, len(h.bounds)+1)}}
	h.series = append(h.series, s)
	h.index[set.Equivalent()] = s
	return s
}

// gapReader is one reader's view of a gapHistogram, whose lock guards it.
type gapReader struct {
	histogram *gapHistogram
	delta     bool
	start     time.Time
	seen      []gapTotals // by series, at the last collection; delta only
}

func newGapReader(h *gapHistogram, t metricdata.Temporality) *gapReader {
	return &gapReader{histogram: h, delta: t == metricdata.DeltaTemporality, start: time.Now()}
}

// collect returns the histogram's points: all since the beginning, or what is
// new since the last collection. ok is false where there is none.
func (r *gapReader) collect() (m metricdata.Metrics, ok bool) {
	h := r.histogram
	data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	if r.delta {
		data.Temporality = metricdata.DeltaTemporality
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for i, s := range h.series {
		totals, after := s.clone(), time.Time{}
		if r.delta {
			totals, after = r.advance(i, totals), r.start
		}
		if totals.count == 0 {
			continue
		}
		data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
			Attributes: s.attributes, StartTime: r.start, Time: now,
			Count: totals.count, Sum: float64(totals.seconds) + totals.rest.Seconds(),
			Bounds: h.metric.Buckets, BucketCounts: totals.counts,
			Exemplars: s.exemplarsSince(after),
		})
	}
	if r.delta {
		r.start = now
	}
	return metricdata.Metrics{
		Name: h.metric.Name, Description: h.metric.Description, Unit: h.metric.Unit, Data: data,
	}, len(data.DataPoints) > 0
}

// advance remembers now as what series i came to, and returns what is new.
func (r *gapReader) advance(i int, now gapTotals) gapTotals {
	if i == len(r.seen) {
		r.seen = append(r.seen, gapTotals{counts: make([]uint64, len(now.counts))})
	}
	before := r.seen[i]
	r.seen[i] = now.clone()
	for k := range now.counts {
		now.counts[k] -= before.counts[k]
	}
	now.count -= before.count
	now.seconds -= before.seconds
	now.rest -= before.rest
	return now
}

func (t gapTotals) clone() gapTotals {
	t.counts = slices.Clone(t.counts)
	return t
}

func (s *gapSeries) exemplarsSince(t time.Time) []metricdata.Exemplar[float64] {
	var out []metricdata.Exemplar[float64]
	for _, e := range s.exemplars {
		if e.at.IsZero() || e.at.Before(t) {
			continue
		}
		traceID, spanID := e.span.TraceID(), e.span.SpanID()
		out = append(out, metricdata.Exemplar[float64]{
			Time: e.at, Value: e.value.Seconds(), TraceID: traceID[:], SpanID: spanID[:],
		})
	}
	return out
}

// sdkGaps records gaps with an instrument of the SDK, for aggregations that are
// the SDK's alone.
type sdkGaps struct{ histogram metric.Float64Histogram }

var _ gapMetric = sdkGaps{}

// add records the samples of each bucket as if each were their mean. It is
// whole nanoseconds, the surplus spread over the first ones: so none can leave
// its bucket by rounding, and the sum stays exact.
func (g sdkGaps) add(ctx context.Context, o *options, buckets []meter.GapBucket) {
	for _, b := range buckets {
		if b.Count <= 0 {
			continue
		}
		n := time.Duration(b.Count)
		mean, surplus := b.Sum/n, b.Sum%n
		exemplar := ctx // one a bucket: more would only replace it
		for i := range n {
			v := mean
			if i < surplus {
				v++
			}
			g.histogram.Record(exemplar, v.Seconds(), o.record...)
			exemplar = context.Background()
		}
	}
}

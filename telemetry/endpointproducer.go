package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// endpointProducer shows an endpointStore to one reader.
type endpointProducer struct {
	store *endpointStore
	scope instrumentation.Scope
	delta bool

	mu    sync.Mutex
	since time.Time                          // the last collection; delta only
	seen  map[*endpointSeries]endpointTotals // as of then; delta only
}

var _ sdkmetric.Producer = (*endpointProducer)(nil)

func (s *endpointStore) producer(t metricdata.Temporality, version string) *endpointProducer {
	return &endpointProducer{
		store: s, delta: t == metricdata.DeltaTemporality,
		scope: instrumentation.Scope{Name: scopeName, Version: version}, since: s.now(),
	}
}

// endpointPoints are the points of one collection.
type endpointPoints struct {
	temporality        metricdata.Temporality
	ttft, tpot         []metricdata.HistogramDataPoint[float64]
	requests, failures []metricdata.DataPoint[int64]
}

// Produce returns what the store holds for this reader: all since the beginning
// of each series, or what is new since the last collection.
func (p *endpointProducer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.store.now()
	points := endpointPoints{temporality: metricdata.CumulativeTemporality}
	if p.delta {
		points.temporality = metricdata.DeltaTemporality
	}
	seen := make(map[*endpointSeries]endpointTotals)
	p.store.each(func(e *endpointSeries) {
		start, totals := e.start, e.endpointTotals
		if p.delta {
			if p.since.After(start) {
				start = p.since
			}
			totals = totals.less(p.seen[e])
			seen[e] = e.clone()
		}
		points.add(e.endpointKey, totals, start, now)
	})
	p.since, p.seen = now, seen
	metrics := points.metrics()
	if len(metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: p.scope, Metrics: metrics}}, nil
}

func (p *endpointPoints) add(k endpointKey, t endpointTotals, start, now time.Time) {
	histogram := func(to *[]metricdata.HistogramDataPoint[float64], m Metric, h endpointHistogram) {
		if h.count > 0 {
			*to = append(*to, metricdata.HistogramDataPoint[float64]{
				Attributes: k.attributes(), StartTime: start, Time: now,
				Count: h.count, Sum: h.sum.Seconds(), Bounds: m.Buckets, BucketCounts: slices.Clone(h.counts),
			})
		}
	}
	histogram(&p.ttft, mEndpointTTFT, t.ttft)
	histogram(&p.tpot, mEndpointTPOT, t.tpot)
	counters := func(to *[]metricdata.DataPoint[int64], key attribute.Key, counts map[string]int64) {
		for value, n := range counts {
			*to = append(*to, metricdata.DataPoint[int64]{Attributes: k.attributes(key.String(value)), StartTime: start, Time: now, Value: n})
		}
	}
	counters(&p.requests, keyOutcome, t.requests)
	counters(&p.failures, keyReason, t.failures)
}

func (p *endpointPoints) metrics() []metricdata.Metrics {
	var out []metricdata.Metrics
	add := func(m Metric, data metricdata.Aggregation) {
		out = append(out, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data})
	}
	if len(p.ttft) > 0 {
		add(mEndpointTTFT, metricdata.Histogram[float64]{Temporality: p.temporality, DataPoints: p.ttft})
	}
	if len(p.tpot) > 0 {
		add(mEndpointTPOT, metricdata.Histogram[float64]{Temporality: p.temporality, DataPoints: p.tpot})
	}
	if len(p.requests) > 0 {
		add(mEndpointRequests, metricdata.Sum[int64]{Temporality: p.temporality, IsMonotonic: true, DataPoints: p.requests})
	}
	if len(p.failures) > 0 {
		add(mEndpointScrapeFailures, metricdata.Sum[int64]{Temporality: p.temporality, IsMonotonic: true, DataPoints: p.failures})
	}
	return out
}

// clone returns t as it is now.
func (t endpointTotals) clone() endpointTotals {
	t.ttft.counts, t.tpot.counts = slices.Clone(t.ttft.counts), slices.Clone(t.tpot.counts)
	t.requests, t.failures = maps.Clone(t.requests), maps.Clone(t.failures)
	return t
}

// less returns what t has more than before.
func (t endpointTotals) less(before endpointTotals) endpointTotals {
	return endpointTotals{
		ttft: t.ttft.less(before.ttft), tpot: t.tpot.less(before.tpot),
		requests: growth(t.requests, before.requests), failures: growth(t.failures, before.failures),
	}
}

func (h endpointHistogram) less(before endpointHistogram) endpointHistogram {
	h.counts = slices.Clone(h.counts)
	for i, n := range before.counts {
		h.counts[i] -= n
	}
	h.count -= before.count
	h.sum -= before.sum
	return h
}

// growth has the counts that have grown, by how much.
func growth(counts, before map[string]int64) map[string]int64 {
	out := make(map[string]int64)
	for key, n := range counts {
		if n > before[key] {
			out[key] = n - before[key]
		}
	}
	return out
}

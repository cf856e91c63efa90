package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// gapStore holds the histograms that are not the SDK's: those of gaps, and the one
// that takes a sample of every message, as the SDK's costs as much as the rest of
// the work on one.
type gapStore struct {
	itl, gap *gapHistogram
	overhead *gapHistogram
	perChunk *gapHistogram // nil: there are no client metrics
	scope    instrumentation.Scope
}

func newGapStore(env environment, version, client string) *gapStore {
	// What the SDK offers beyond its default, samples without a trace, says
	// nothing here.
	exemplars := env.value("OTEL_METRICS_EXEMPLAR_FILTER") != "always_off"
	s := &gapStore{
		itl:   newGapHistogram(mITL, cardinalityLimit, exemplars),
		gap:   newGapHistogram(mGap, cardinalityLimit, exemplars),
		scope: instrumentation.Scope{Name: scopeName, Version: version},

		overhead: newGapHistogram(mOverhead, cardinalityLimit, false),
	}
	if client == clientGenAI || client == client141 {
		s.perChunk = newGapHistogram(perChunkMetric(client), cardinalityLimit, exemplars)
	}
	return s
}

// gapProducer shows a gapStore to one reader.
type gapProducer struct {
	scope   instrumentation.Scope
	readers []*gapReader
}

var _ sdkmetric.Producer = (*gapProducer)(nil)

func (s *gapStore) producer(t metricdata.Temporality) *gapProducer {
	p := &gapProducer{scope: s.scope, readers: []*gapReader{newGapReader(s.itl, t), newGapReader(s.gap, t), newGapReader(s.overhead, t)}}
	if s.perChunk != nil {
		p.readers = append(p.readers, newGapReader(s.perChunk, t))
	}
	return p
}

// Produce returns what the histograms hold for this reader.
func (p *gapProducer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	out := metricdata.ScopeMetrics{Scope: p.scope}
	for _, r := range p.readers {
		if m, ok := r.collect(); ok {
			out.Metrics = append(out.Metrics, m)
		}
	}
	if len(out.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{out}, nil
}

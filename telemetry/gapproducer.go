package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// gapStore holds the histograms of gaps that are not the SDK's.
type gapStore struct {
	itl, gap *gapHistogram
	scope    instrumentation.Scope
}

func newGapStore(env environment, version string) *gapStore {
	// What the SDK offers beyond its default, samples without a trace, says
	// nothing here.
	exemplars := env.value("OTEL_METRICS_EXEMPLAR_FILTER") != "always_off"
	return &gapStore{
		itl:   newGapHistogram(mITL, cardinalityLimit, exemplars),
		gap:   newGapHistogram(mGap, cardinalityLimit, exemplars),
		scope: instrumentation.Scope{Name: scopeName, Version: version},
	}
}

// gapProducer shows a gapStore to one reader.
type gapProducer struct {
	scope   instrumentation.Scope
	readers []*gapReader
}

var _ sdkmetric.Producer = (*gapProducer)(nil)

func (s *gapStore) producer(t metricdata.Temporality) *gapProducer {
	return &gapProducer{scope: s.scope, readers: []*gapReader{newGapReader(s.itl, t), newGapReader(s.gap, t)}}
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

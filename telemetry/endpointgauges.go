package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// endpointGauges are read from the router at each collection: an endpoint that
// left is no longer there, and what is not known is not shown.
type endpointGauges struct {
	inFlight, healthy metric.Int64Observable
	queue, kvUsage    metric.Float64Observable
	present           func() []Endpoint
}

func observeEndpoints(mt metric.Meter, guard *guard, present func() []Endpoint) error {
	m := &maker{meter: mt}
	g := &endpointGauges{
		present:  present,
		inFlight: m.upDown(mEndpointInFlight), healthy: m.observedGauge(mEndpointHealthy),
		queue: m.observedFloat(mEndpointQueue), kvUsage: m.observedFloat(mEndpointKVUsage),
	}
	if m.err != nil {
		return m.err
	}
	if _, err := mt.RegisterCallback(guard.callback(g.observe), g.inFlight, g.healthy, g.queue, g.kvUsage); err != nil {
		return fmt.Errorf("observing endpoints: %w", err)
	}
	return nil
}

func (g *endpointGauges) observe(_ context.Context, o metric.Observer) error {
	for _, e := range g.present() {
		set := metric.WithAttributeSet(endpointKey{e.Pool, e.Address}.attributes())
		o.ObserveInt64(g.inFlight, int64(e.InFlight), set)
		o.ObserveInt64(g.healthy, oneIf(e.Healthy), set)
		if e.Queue.OK {
			o.ObserveFloat64(g.queue, e.Queue.V, set)
		}
		if e.KVUsage.OK {
			o.ObserveFloat64(g.kvUsage, e.KVUsage.V, set)
		}
	}
	return nil
}

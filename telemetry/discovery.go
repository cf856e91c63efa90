package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Discovery is how the discovery of one pool's endpoints stands.
type Discovery struct {
	Pool      string
	Endpoints int // in use
	// Current tells that the source can say what there is.
	Current           bool
	Changes, Failures int64 // since the pool has this source
}

// The metrics of discovery. A series ends with the pool.
var (
	mDiscoveryEndpoints = Metric{Name: "inferspan.discovery.endpoints", Kind: Gauge, Unit: "{endpoint}",
		Description: "Endpoints of the pool that were discovered and are in use.",
		Attributes:  []string{string(keyPool)}}
	mDiscoveryCurrent = Metric{Name: "inferspan.discovery.current", Kind: Gauge,
		Description: "1 while the pool's source says what endpoints there are; 0 while it can't, or says that there is nothing to find: what was found before stays for a time.",
		Attributes:  []string{string(keyPool)}}
	mDiscoveryChanges = Metric{Name: "inferspan.discovery.changes", Kind: Counter, Unit: "{change}",
		Description: "Times that the discovered endpoints of the pool changed.",
		Attributes:  []string{string(keyPool)}}
	mDiscoveryFailures = Metric{Name: "inferspan.discovery.failures", Kind: Counter, Unit: "{failure}",
		Description: "Times that the pool's source could not say what endpoints there are, or said that there is nothing to find.",
		Attributes:  []string{string(keyPool)}}
)

func discoveryMetrics() []Metric {
	return []Metric{mDiscoveryEndpoints, mDiscoveryCurrent, mDiscoveryChanges, mDiscoveryFailures}
}

// observeDiscovery shows what present returns, at each collection.
func observeDiscovery(mt metric.Meter, g *guard, present func() []Discovery) error {
	m := &maker{meter: mt}
	endpoints, current := m.observedGauge(mDiscoveryEndpoints), m.observedGauge(mDiscoveryCurrent)
	changes, failures := m.observedCounter(mDiscoveryChanges), m.observedCounter(mDiscoveryFailures)
	if m.err != nil {
		return m.err
	}
	observe := func(_ context.Context, o metric.Observer) error {
		for _, d := range present() {
			pool := metric.WithAttributeSet(attribute.NewSet(keyPool.String(d.Pool)))
			o.ObserveInt64(endpoints, int64(d.Endpoints), pool)
			o.ObserveInt64(current, oneIf(d.Current), pool)
			o.ObserveInt64(changes, d.Changes, pool)
			o.ObserveInt64(failures, d.Failures, pool)
		}
		return nil
	}
	if _, err := mt.RegisterCallback(g.callback(observe), endpoints, current, changes, failures); err != nil {
		return fmt.Errorf("observing discovery: %w", err)
	}
	return nil
}

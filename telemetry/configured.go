package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// configMetrics tell whether what runs is what the configuration says.
type configMetrics struct {
	reloads, failures metric.Int64Counter
	current           metric.Int64Gauge
}

func newConfigMetrics(mt metric.Meter) (*configMetrics, error) {
	m := &maker{meter: mt}
	c := &configMetrics{reloads: m.counter(mConfigReloads), failures: m.counter(mConfigFailures)}
	var err error
	c.current, err = mt.Int64Gauge(mConfigCurrent.Name, metric.WithDescription(mConfigCurrent.Description))
	m.check(mConfigCurrent, err)
	return c, m.err
}

// ConfigWatched names the parts of the configuration that are read anew when
// they change, so that their first failure is a change and not a beginning.
func (t *Telemetry) ConfigWatched(parts ...string) {
	for _, part := range parts {
		t.addConfig(t.config.reloads, part, 0)
		t.addConfig(t.config.failures, part, 0)
	}
	t.ConfigCurrent(true)
}

// ConfigRead counts that a part was read anew, with its error.
func (t *Telemetry) ConfigRead(part string, err error) {
	if err != nil {
		t.addConfig(t.config.failures, part, 1)
		return
	}
	t.addConfig(t.config.reloads, part, 1)
}

func (t *Telemetry) addConfig(c metric.Int64Counter, part string, n int64) {
	c.Add(context.Background(), n, metric.WithAttributes(keyReason.String(part)))
}

// ConfigCurrent says whether what runs is all that the configuration says.
func (t *Telemetry) ConfigCurrent(current bool) {
	t.config.current.Record(context.Background(), oneIf(current))
}

// pin admits names for good.
func (b *boundedNames) pin(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.pinned[clean(name)] = true
	}
}

package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// observeOffset shows the offset of Envoy's clock while it is known.
func observeOffset(mt metric.Meter, g *guard, offset func() (time.Duration, bool)) error {
	_, err := mt.Float64ObservableGauge(mClockOffset.Name,
		metric.WithUnit(mClockOffset.Unit), metric.WithDescription(mClockOffset.Description),
		metric.WithFloat64Callback(g.float64(func(_ context.Context, o metric.Float64Observer) error {
			if d, ok := offset(); ok {
				o.Observe(d.Seconds())
			}
			return nil
		})))
	if err != nil {
		return fmt.Errorf("observing the offset of Envoy's clock: %w", err)
	}
	return nil
}

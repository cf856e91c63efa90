package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// Unmatched counts an access-log entry that settled no exchange, by why.
func (t *Telemetry) Unmatched(reason string) {
	t.instruments.unmatched.Add(context.Background(), 1, metric.WithAttributes(keyReason.String(reason)))
}

// Unseen counts an exchange that the access log tells of and that nothing of ours
// has seen.
func (t *Telemetry) Unseen() { t.instruments.unseen.Add(context.Background(), 1) }

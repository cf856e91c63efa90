package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/inferspan/inferspan/processor/meter"
)

// Failures writes one line of log for each exchange that failed, and for each that
// we answered with 429 or 5xx. It is safe for concurrent use.
type Failures struct {
	log *slog.Logger
}

// NewFailures returns a Failures that writes to log, at the level info.
func NewFailures(log *slog.Logger) *Failures { return &Failures{log: log} }

// Add writes the line of r if it failed. What clients and servers can choose
// freely is cut and cleaned; nothing of the body and of the headers is in it, but
// the request's id.
func (f *Failures) Add(r *meter.Record) {
	ctx := context.Background()
	if !failed(r) || !f.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(r.Outcome)),
		slog.String("error_type", errorType(r)),
		slog.String("model", clean(r.RequestModel.V)),
		slog.String("pool", r.Route.Pool),
		slog.String("endpoint", r.Route.Endpoint),
		slog.Float64("duration_s", r.End.Seconds()),
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "exchange failed", append(attrs, exchangeIDs(r.RequestID, &r.Trace)...)...)
}

// exchangeIDs are what every line of log of an exchange has.
func exchangeIDs(request string, t *meter.Trace) []slog.Attr {
	flags := "00"
	if t.Sampled {
		flags = "01"
	}
	return []slog.Attr{
		slog.String("request_id", clean(request)),
		slog.String("trace_id", hex.EncodeToString(t.TraceID[:])),
		slog.String("span_id", hex.EncodeToString(t.SpanID[:])),
		slog.String("trace_flags", flags),
	}
}

package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// countPanic is how a panic is counted, here as by the processor.
const countPanic = "panic"

// logPanic tells of the panic p, which was caught here.
func logPanic(log *slog.Logger, p any, ids ...slog.Attr) {
	log.LogAttrs(context.Background(), slog.LevelError, "panic caught", append(ids,
		slog.String("in", "telemetry"), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))...)
}

// guard catches the panics of what metrics are read from. Readers call it on
// goroutines of their own, where a panic would end the process. What it would
// have shown is missing then, without an error: with one the SDK would export
// nothing at all.
type guard struct {
	log *slog.Logger
	// counting counts the panics; nil until there are instruments, which need
	// the readers first.
	counting atomic.Pointer[Telemetry]
}

// caught is to be deferred.
func (g *guard) caught() {
	if p := recover(); p != nil {
		if t := g.counting.Load(); t != nil {
			t.Count(countPanic)
		}
		logPanic(g.log, p)
	}
}

func (g *guard) callback(f metric.Callback) metric.Callback {
	return func(ctx context.Context, o metric.Observer) error {
		defer g.caught()
		return f(ctx, o)
	}
}

func (g *guard) float64(f metric.Float64Callback) metric.Float64Callback {
	return func(ctx context.Context, o metric.Float64Observer) error {
		defer g.caught()
		return f(ctx, o)
	}
}

func (g *guard) producer(p sdkmetric.Producer) sdkmetric.Producer { return guardedProducer{g, p} }

type guardedProducer struct {
	guard    *guard
	producer sdkmetric.Producer
}

// Produce returns what the producer does, and nothing where it panics.
func (p guardedProducer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	defer p.guard.caught()
	return p.producer.Produce(ctx)
}

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

// The bounds of the export.
const (
	// queueBytes is what records may take in memory that wait for a collector
	// or are on their way to it, together with those that wait for the worker.
	queueBytes  = 32 << 20
	intakeBytes = 4 << 20
	// batchBytes is the most that a request to the collector takes, estimated:
	// a collector takes 4 MiB.
	batchBytes = 2 << 20
	// retryFirst is how long a batch waits after its first try while the collector
	// is away, retryMax how long at most, each time twice as long.
	retryFirst, retryMax = time.Second, 30 * time.Second
)

// Why spans were dropped.
const (
	dropQueueFull = "queue_full"    // no room: the collector is away, or slower than the traffic
	dropFailed    = "export_failed" // the collector refused the batch, and would again
	dropRejected  = "rejected"      // it took the others of the batch
	dropShutdown  = "shutdown"      // it was away at the end
)

// exportOptions are what OTEL_BSP_* says.
type exportOptions struct {
	delay     time.Duration // the longest that a span waits for its batch to fill
	timeout   time.Duration // of one export, the exporter's retries included
	batchSize int           // spans
	queueSize int           // spans; 0: bounded in bytes only
	// after is the clock between two tries while the collector is away.
	after func(time.Duration) <-chan time.Time
}

func (e environment) exportOptions() exportOptions {
	return exportOptions{
		delay:     e.milliseconds("OTEL_BSP_SCHEDULE_DELAY", time.Second),
		timeout:   e.milliseconds("OTEL_BSP_EXPORT_TIMEOUT", 30*time.Second),
		batchSize: e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
		queueSize: e.number("OTEL_BSP_MAX_QUEUE_SIZE", 0),
		after:     time.After,
	}
}

func (e environment) newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	p, err := e.protocol("TRACES")
	if err != nil {
		return nil, err
	}
	secure := e.exportTLS("TRACES")
	if p == protocolGRPC {
		options := []otlptracegrpc.Option{
			otlptracegrpc.WithDialOption(connect),
			// A batch is bounded already, and measuring it once more takes an eighth of
			// what an export costs.
			otlptracegrpc.WithMaxRequestSize(0),
		}
		if secure != nil {
			options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(secure)))
		}
		exporter, err := otlptracegrpc.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("making the OTLP gRPC span exporter: %w", err)
		}
		return exporter, nil
	}
	var options []otlptracehttp.Option
	if secure != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(secure))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("making the OTLP HTTP span exporter: %w", err)
	}
	return exporter, nil
}

// spanCounts counts what becomes of spans, and of events as log records.
type spanCounts interface {
	queued(n int)
	sent(n int)
	dropped(n int, reason string)
	eventsSent(n int)
	eventsDropped(n int, reason string)
}

// connect has gRPC look for a collector that was away as often as spans are
// tried; its own default is two minutes.
var connect = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: retryFirst, Multiplier: 1.6, Jitter: .2, MaxDelay: retryMax},
	MinConnectTimeout: 20 * time.Second,
})

// export brings records out as spans: batch by batch, one at a time. While the
// collector is away they wait, and at the queue's bound the newest are dropped:
// only so can an exemplar know whether its span was accepted. The SDK's own batch
// processor drops without a count, and bounds its queue in spans instead of bytes.
type export struct {
	options  exportOptions
	queue    *queue
	maker    *spanMaker
	exporter sdktrace.SpanExporter
	logs     sdklog.Exporter // nil: events go into no log
	counts   spanCounts
	log      *slog.Logger
	failures sampler

	closing chan struct{} // closed when the end begins
	once    sync.Once
	abort   context.CancelFunc // ends the export that is under way
	done    chan struct{}      // closed when nothing waits any more
}

func startExport(o exportOptions, maxBytes int, maker *spanMaker, exporter sdktrace.SpanExporter, logs sdklog.Exporter, counts spanCounts, log *slog.Logger) *export {
	x := &export{
		options: o, queue: newQueue(maxBytes, o.queueSize), maker: maker,
		exporter: exporter, logs: logs, counts: counts, log: log,
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	ctx, abort := context.WithCancel(context.Background())
	x.abort = abort
	go x.run(ctx)
	return x
}

// offer takes e if there is room, and tells whether it did.
func (x *export) offer(e entry) bool {
	ok, closed := x.queue.put(e)
	switch {
	case ok:
		x.counts.queued(e.spans)
	case closed:
		x.counts.dropped(e.spans, dropShutdown)
	default:
		x.counts.dropped(e.spans, dropQueueFull)
	}
	return ok
}

// run exports until the queue is closed and empty; once ctx ends, what is left
// is dropped.
func (x *export) run(ctx context.Context) {
	defer close(x.done)
	timer := time.NewTimer(0)
	<-timer.C
	waiting := false // the timer runs
	for {
		select {
		case <-x.queue.ready:
			if x.queue.isClosed() {
				x.flush(ctx)
				return
			}
			for x.queue.hasFull(x.options.batchSize, batchBytes) {
				x.exportBatch(ctx)
			}
			if !waiting {
				waiting = true
				timer.Reset(x.options.delay)
			}
		case <-timer.C:
			waiting = false
			x.flush(ctx)
		}
	}
}

// flush exports what waits; once aborted, it counts it as dropped.
func (x *export) flush(ctx context.Context) {
	for x.exportBatch(ctx) {
	}
}

// shutdown exports what waits and stops. What has not gone out when ctx ends is
// dropped and counted.
func (x *export) shutdown(ctx context.Context) error {
	x.once.Do(func() { close(x.closing) })
	x.queue.close()
	stop := context.AfterFunc(ctx, x.abort)
	<-x.done
	stop()
	x.abort()
	var late error
	if err := ctx.Err(); err != nil {
		late = fmt.Errorf("flushing spans: %w", err)
	}
	// The exporters give up at once what they still do where ctx has ended.
	stopped := x.exporter.Shutdown(ctx)
	if x.logs != nil {
		stopped = errors.Join(stopped, x.logs.Shutdown(ctx))
	}
	if stopped != nil && late == nil {
		return fmt.Errorf("stopping the exporters of spans and events: %w", stopped)
	}
	return late
}

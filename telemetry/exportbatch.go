package telemetry

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// exportBatch exports the oldest batch and tells whether more waits. While the
// collector is away it tries again, until the end begins.
func (x *export) exportBatch(ctx context.Context) (more bool) {
	batch, more := x.queue.take(x.options.batchSize, batchBytes)
	if len(batch) == 0 {
		return false
	}
	defer x.queue.release(batch)
	n := 0
	for _, e := range batch {
		n += e.spans
	}
	begun, tries := time.Now(), 0
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		if ctx.Err() != nil {
			// Their events are not even made.
			x.counts.dropped(n, dropShutdown)
			return more
		}
		tries++
		if x.try(ctx, batch, n) {
			if tries > 1 {
				x.log.Info("the collector answers again", "away", time.Since(begun).Round(time.Second).String(), "tries", tries)
			}
			return more
		}
		select {
		case <-x.options.after(wait):
		case <-x.closing:
		case <-ctx.Done():
		}
	}
}

// try exports a batch of n spans and tells whether it is settled: taken, or
// dropped and counted. Its spans are made anew each time, so that only compact
// records wait.
func (x *export) try(ctx context.Context, batch []entry, n int) (settled bool) {
	ending := x.ending()
	exportCtx, cancel := context.WithTimeout(ctx, x.options.timeout)
	defer cancel()
	err := guarded(func() error { return x.exporter.ExportSpans(exportCtx, x.maker.spans(batch)) })
	rejected, partial := rejectedSpans(err)
	switch {
	case err == nil:
		x.counts.sent(n)
	case partial:
		rejected = min(rejected, n)
		x.counts.sent(n - rejected)
		x.counts.dropped(rejected, dropRejected)
	case ctx.Err() != nil, temporary(err) && ending:
		x.counts.dropped(n, dropShutdown)
	case temporary(err):
		x.maker.log.take()
		if leftOut, ok := x.failures.due(); ok {
			x.log.Warn("the collector is away, spans wait", "error", err, "spans", x.queue.waiting(), "reports_left_out", leftOut)
		}
		return false
	default:
		x.counts.dropped(n, dropFailed)
	}
	if err != nil {
		x.report(err, n, rejected)
	}
	x.exportEvents(ctx, err != nil && !partial)
	return true
}

// guarded is what f returns, or its panic as an error: a batch that can't be
// brought out is dropped and counted, and the next one is tried.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// ending tells whether the end has begun, so that a batch is tried once more only.
func (x *export) ending() bool {
	select {
	case <-x.closing:
		return true
	default:
		return false
	}
}

// exportEvents exports the events of the batch as log records. Where its spans
// could not go out it does not try: events that name no span explain nothing.
func (x *export) exportEvents(ctx context.Context, failed bool) {
	records := x.maker.log.take()
	n := len(records)
	if n == 0 {
		return
	}
	if failed {
		x.counts.eventsDropped(n, dropFailed)
		return
	}
	exportCtx, cancel := context.WithTimeout(ctx, x.options.timeout)
	defer cancel()
	err := guarded(func() error { return x.logs.Export(exportCtx, records) })
	rejected, partial := rejectedSpans(err)
	switch {
	case err == nil:
		x.counts.eventsSent(n)
		return
	case partial:
		rejected = min(rejected, n)
		x.counts.eventsSent(n - rejected)
		x.counts.eventsDropped(rejected, dropRejected)
	default:
		x.counts.eventsDropped(n, dropFailed)
	}
	if leftOut, ok := x.failures.due(); ok {
		x.log.Warn("the collector did not take all events", "error", err,
			"events", n, "rejected", rejected, "reports_left_out", leftOut)
	}
}

func (x *export) report(err error, spans, rejected int) {
	if leftOut, ok := x.failures.due(); ok {
		x.log.Warn("the collector did not take all spans", "error", err,
			"spans", spans, "rejected", rejected, "reports_left_out", leftOut)
	}
}

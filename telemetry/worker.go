package telemetry

import "context"

// account queues the record's spans and records its metrics, which name the
// span only where it goes out.
func (t *Telemetry) account(e entry) {
	ctx := context.Background()
	e.verdict = e.rules.keep.judge(e.record)
	if t.export != nil && e.keep && t.export.offer(e) {
		ctx = exemplarContext(&e.record.Trace)
	}
	t.measure(ctx, e.record, e.rules)
}

// intakeBatch is how many records the worker takes at a time.
const intakeBatch = 64

func (t *Telemetry) work() {
	defer close(t.worked)
	for {
		<-t.intake.ready
		closed := t.intake.isClosed()
		for more := true; more; {
			var batch []entry
			batch, more = t.intake.take(intakeBatch, queueBytes)
			for _, e := range batch {
				t.accountGuarded(e)
			}
			t.intake.release(batch)
		}
		if closed {
			return
		}
	}
}

// accountGuarded is account by the worker, which has nobody else to catch a panic:
// it costs the telemetry of its exchange and no more.
func (t *Telemetry) accountGuarded(e entry) {
	defer func() {
		if p := recover(); p != nil {
			t.Count(countPanic)
			logPanic(t.log, p, exchangeIDs(e.record.RequestID, &e.record.Trace)...)
		}
	}()
	t.account(e)
}

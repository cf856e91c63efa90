package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

func benchmark(b *testing.B) *Telemetry {
	b.Helper()
	tel, err := newTelemetry(b.Context(), quiet(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return tel
}

// thousandTokens is a stream of 1000 tokens, 12 ms apart on average. Its span shows
// what an ordinary one does; that of stalledRecord, all that one can.
func thousandTokens() *meter.Record {
	r := stalledRecord()
	r.Stalls = 0
	r.ITL.Exact = make([]meter.GapBucket, len(bucketsGap)+1)
	for i := 3; i < 8; i++ {
		r.ITL.Exact[i] = meter.GapBucket{Count: 200, Sum: 200 * 12 * time.Millisecond}
	}
	r.Gap = r.ITL
	return r
}

// BenchmarkEnd is what an exchange's own goroutine pays at its end; the worker
// is kept from running beside it.
func BenchmarkEnd(b *testing.B) {
	q, r := newQueue(1<<40, 0), richRecord()
	tel := &Telemetry{intake: q}
	tel.rules.Store(rulesOf(b, quiet()))
	b.ReportAllocs()
	for b.Loop() {
		tel.End(r)
		if len(q.entries) == intakeBatch {
			batch, _ := q.take(intakeBatch, queueBytes)
			q.release(batch)
		}
	}
}

func BenchmarkBegin(b *testing.B) {
	tel := benchmark(b)
	b.ReportAllocs()
	for b.Loop() {
		tel.Begin(meter.Begin{Operation: "chat", Model: "llama", ClientTraceparent: clientSampled})
	}
}

func BenchmarkFirstToken(b *testing.B) {
	tel := benchmark(b)
	l := meter.Labels{Operation: "chat", Model: "llama", Pool: "default", Status: 200}
	b.ReportAllocs()
	for b.Loop() {
		tel.First(meter.ReachedFirstToken, time.Millisecond, l)
	}
}

func BenchmarkOverhead(b *testing.B) {
	tel := benchmark(b)
	b.ReportAllocs()
	for b.Loop() {
		tel.Overhead("response_body", time.Microsecond)
	}
}

// BenchmarkMeasure is what the worker pays for a record's metrics.
func BenchmarkMeasure(b *testing.B) {
	for name, r := range map[string]*meter.Record{"4tokens": richRecord(), "1000tokens": thousandTokens()} {
		b.Run(name, func(b *testing.B) {
			tel := benchmark(b)
			b.ReportAllocs()
			for b.Loop() {
				tel.measure(context.Background(), r, tel.rules.Load())
			}
		})
	}
}

// BenchmarkSpan is what the export pays to make a record's spans.
func BenchmarkSpan(b *testing.B) {
	for name, r := range map[string]*meter.Record{"10events": richRecord(), "64chunks": stalledRecord()} {
		b.Run(name, func(b *testing.B) {
			c := quiet()
			c.setDefaults()
			m := newSpanMaker(c.Trace, nil, "")
			batch := []entry{newEntry(r, rulesOf(b, c))}
			batch[0].verdict = batch[0].rules.keep.judge(r)
			b.ReportAllocs()
			for b.Loop() {
				m.spans(batch)
			}
		})
	}
}

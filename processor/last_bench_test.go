package processor

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
	"github.com/inferspan/inferspan/telemetry"
)

// usageAndDone is the last frame of a stream with usage.
const usageAndDone = `data: {"id":"r1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"id":"r1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1000,"total_tokens":1009}}` + "\n\n" +
	"data: [DONE]\n\n"

// BenchmarkLastFrame is what the last frame of a stream of a thousand tokens costs
// from having it to having replied, and to having handed its record to telemetry
// and the journal, all that is on by default: the medians, as ns/reply and
// ns/last-frame. Telemetry's worker works beside it.
func BenchmarkLastFrame(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	tel, err := telemetry.New(b.Context(), telemetry.Config{Logger: log, Getenv: func(string) string { return "" }})
	if err != nil {
		b.Fatal(err)
	}
	replied := &clock{}
	s := New(Config{
		Telemetry: tel, Router: newFakeRouter(), Journal: journal.New(64 << 20), Logger: log,
		Meter: meter.Options{GapBounds: telemetry.GapBounds(), MaxChunks: 64},
		Now:   time.Now,
	})
	begin := []message{
		{phase: "request_headers", end: true, headers: chatHead()},
		{phase: "response_headers", headers: streamHead},
	}
	frame, last := message{phase: "response_body", body: token}.wire(), message{phase: "response_body", body: usageAndDone, end: true}.wire()
	var reply, whole []time.Duration
	for b.Loop() {
		x := newExchange(s, replied, caller{})
		at := time.Now()
		for _, m := range begin {
			if _, err := x.handle(m.wire(), at); err != nil {
				b.Fatal(err)
			}
		}
		for range 1000 {
			at = at.Add(12 * time.Millisecond)
			if _, err := x.handle(frame, at); err != nil {
				b.Fatal(err)
			}
		}
		begun := time.Now()
		if _, err := x.handle(last, at.Add(12*time.Millisecond)); err != nil {
			b.Fatal(err)
		}
		whole = append(whole, time.Since(begun))
		reply = append(reply, replied.at.Sub(begun))
	}
	if err := tel.Shutdown(context.Background()); err != nil {
		b.Error(err)
	}
	b.ReportMetric(median(reply), "ns/reply")
	b.ReportMetric(median(whole), "ns/last-frame")
}

// median is in nanoseconds. What else the machine does has little to do with it.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds())
}

// clock is a sender that notes when it was last sent something.
type clock struct{ at time.Time }

func (c *clock) Send(*wire.Reply) error {
	c.at = time.Now()
	return nil
}

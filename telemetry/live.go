package telemetry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/inferspan/inferspan/processor/meter"
)

// liveMetrics are read from the exchanges that have not ended. Nothing is added
// at a beginning and taken away at an end: what is lost between can't stay.
type liveMetrics struct {
	active, streams metric.Int64ObservableUpDownCounter
	tokens          metric.Int64ObservableCounter
	silence         metric.Float64ObservableGauge

	labels *labels
	live   func() []meter.Live
	now    func() time.Time
}

// liveCounts are what the live exchanges of one label set come to.
type liveCounts struct {
	all, streams, tokens int64
	silence              time.Duration
}

// streamTokens counts the tokens of one label set's streams. It is safe for
// concurrent use.
type streamTokens struct {
	finished atomic.Int64
	// shown is the most that was ever shown. Between an exchange's leaving the
	// live ones and its record there is a moment in which its tokens are nowhere,
	// and a counter that falls counts twice.
	shown atomic.Int64
}

// show returns the count with live tokens on top of the finished.
func (s *streamTokens) show(live int64) int64 {
	for {
		shown, now := s.shown.Load(), s.finished.Load()+live
		if now <= shown {
			return shown
		}
		if s.shown.CompareAndSwap(shown, now) {
			return now
		}
	}
}

// end adds the tokens of a finished stream, as the live ones are counted.
func (s *streamTokens) end(r *meter.Record) {
	var n int64
	for _, tokens := range r.Timeline.Tokens {
		n += int64(tokens)
	}
	s.finished.Add(n)
}

// observeLive shows the live exchanges by label set; sets that had some before
// show zero.
func observeLive(mt metric.Meter, g *guard, l *labels, live func() []meter.Live) error {
	m := &maker{meter: mt}
	o := &liveMetrics{
		active: m.upDown(mActive), streams: m.upDown(mStreamActive),
		tokens: m.observedCounter(mStreamTokens), silence: m.observedFloat(mSilence),
		labels: l, live: live, now: time.Now,
	}
	if m.err != nil {
		return m.err
	}
	if _, err := mt.RegisterCallback(g.callback(o.observe), o.active, o.streams, o.tokens, o.silence); err != nil {
		return fmt.Errorf("observing live exchanges: %w", err)
	}
	return nil
}

func (m *liveMetrics) observe(_ context.Context, o metric.Observer) error {
	counts := m.count()
	for _, set := range m.labels.all() {
		c := counts[set]
		o.ObserveInt64(m.active, c.all, set.observe...)
		o.ObserveInt64(m.streams, c.streams, set.observe...)
		o.ObserveInt64(m.tokens, set.tokens.show(c.tokens), set.observe...)
		o.ObserveFloat64(m.silence, c.silence.Seconds(), set.observe...)
	}
	return nil
}

func (m *liveMetrics) count() map[*labelSet]liveCounts {
	counts, now := make(map[*labelSet]liveCounts), m.now()
	for _, l := range m.live() {
		set, _ := m.labels.get(l.Labels.Operation, l.Labels.Model, l.Labels.Pool, success(l.Labels.Status))
		c := counts[set]
		c.all++
		if l.Stream {
			c.streams++
			c.tokens += l.Tokens
			if !l.LastToken.IsZero() {
				c.silence = max(c.silence, now.Sub(l.LastToken))
			}
		}
		counts[set] = c
	}
	return counts
}

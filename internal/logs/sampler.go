// Package logs keeps the log short where something goes wrong again and again.
package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The bounds of what is written of one kind of line.
const (
	// Burst is how many lines of a kind are written in each Interval.
	Burst = 10
	// Interval is how long lines are counted, from the first one on.
	Interval = time.Second

	// maxKinds bounds the kinds that are told apart at one time.
	maxKinds = 256
)

// KindKey is the attribute that, beside the message, says what kind of line it
// is; it has a bounded set of values.
const KindKey = "outcome"

// Sampler is a slog.Handler that writes the first lines of a kind and, when the
// interval is over, one line that says how many were left out. Lines are of one
// kind that have the same level, message and KindKey.
type Sampler struct {
	slog.Handler

	counts *counts
}

type counts struct {
	out slog.Handler

	mu     sync.Mutex
	kinds  map[kind]*count // Invariant: at most maxKinds, and one for all others
	closed bool
}

type kind struct {
	level         slog.Level
	message, more string
}

type count struct {
	written, left int
	end           *time.Timer
}

// NewSampler returns a Sampler that writes to h.
func NewSampler(h slog.Handler) *Sampler {
	return &Sampler{Handler: h, counts: &counts{out: h, kinds: make(map[kind]*count)}}
}

// Handle writes r or counts it.
func (s *Sampler) Handle(ctx context.Context, r slog.Record) error {
	k := kind{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == KindKey {
			k.more = a.Value.String()
		}
		return a.Key != KindKey
	})
	if !s.counts.admit(k) {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs returns a Sampler that counts together with s.
func (s *Sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Sampler{Handler: s.Handler.WithAttrs(attrs), counts: s.counts}
}

// WithGroup returns a Sampler that counts together with s.
func (s *Sampler) WithGroup(name string) slog.Handler {
	return &Sampler{Handler: s.Handler.WithGroup(name), counts: s.counts}
}

// Close says what was left out so far; from then on nothing is.
func (s *Sampler) Close() {
	c := s.counts
	c.mu.Lock()
	c.closed = true
	kinds := c.kinds
	c.kinds = nil
	c.mu.Unlock()
	for k, n := range kinds {
		n.end.Stop()
		c.tell(k, n.left)
	}
}

// admit counts a line of kind k and tells whether it is written.
func (c *counts) admit(k kind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return true
	}
	if _, known := c.kinds[k]; !known && len(c.kinds) >= maxKinds {
		k = kind{level: k.level, message: "lines of other kinds"}
	}
	n := c.kinds[k]
	if n == nil {
		n = &count{}
		n.end = time.AfterFunc(Interval, func() { c.over(k, n) })
		c.kinds[k] = n
	}
	if n.written < Burst {
		n.written++
		return true
	}
	n.left++
	return false
}

// over ends the interval of k.
func (c *counts) over(k kind, n *count) {
	c.mu.Lock()
	mine := c.kinds[k] == n
	if mine {
		delete(c.kinds, k)
	}
	c.mu.Unlock()
	if mine {
		c.tell(k, n.left)
	}
}

func (c *counts) tell(k kind, left int) {
	if left == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), k.level, "lines left out", 0)
	r.AddAttrs(slog.String("of", k.message), slog.Int("count", left))
	if k.more != "" {
		r.AddAttrs(slog.String(KindKey, k.more))
	}
	// If the log can't be written, there is no one to tell.
	_ = c.out.Handle(context.Background(), r)
}

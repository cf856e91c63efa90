package processor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// liveTable holds the exchanges under way. It is bounded by the streams.
type liveTable struct {
	mu      sync.Mutex
	entries map[*liveEntry]struct{}
}

// liveEntry is one exchange's place in the table. The exchange's goroutine
// writes it; the state whole, so that readers see one or the next, and apart
// from it what changes with every frame.
type liveEntry struct {
	state  atomic.Pointer[meter.Live]
	tokens atomic.Int64
	last   atomic.Int64 // of the tokens, nanoseconds after the start; with tokens
}

// progress notes how far the stream of e is; e may be nil.
func (e *liveEntry) progress(m *meter.Meter) {
	if e == nil {
		return
	}
	if tokens, last, ok := m.Progress(); ok {
		e.last.Store(int64(last))
		e.tokens.Store(tokens)
	}
}

func (e *liveEntry) live() meter.Live {
	l := *e.state.Load()
	if l.Tokens = e.tokens.Load(); l.Tokens > 0 {
		l.LastToken = l.Start.Add(time.Duration(e.last.Load()))
	}
	return l
}

func (t *liveTable) add(l meter.Live) *liveEntry {
	e := new(liveEntry)
	e.state.Store(&l)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = make(map[*liveEntry]struct{})
	}
	t.entries[e] = struct{}{}
	return e
}

// remove takes e out; e may be nil or have left before.
func (t *liveTable) remove(e *liveEntry) {
	if e == nil {
		return
	}
	t.mu.Lock()
	delete(t.entries, e)
	t.mu.Unlock()
}

func (t *liveTable) snapshot() []meter.Live {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]meter.Live, 0, len(t.entries))
	for e := range t.entries {
		out = append(out, e.live())
	}
	return out
}

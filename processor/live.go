package processor

import (
	"sync"
	"sync/atomic"

	"github.com/inferspan/inferspan/processor/meter"
)

// liveTable holds the exchanges under way. It is bounded by the streams.
type liveTable struct {
	mu      sync.Mutex
	entries map[*liveEntry]struct{}
}

// liveEntry is one exchange's place in the table. The exchange's goroutine
// writes it whole, readers see one state or the next.
type liveEntry struct{ state atomic.Pointer[meter.Live] }

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
		out = append(out, *e.state.Load())
	}
	return out
}

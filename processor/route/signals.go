package route

import "time"

// Opt is a value that may not be known. Unknown is never zero. The zero Opt is
// unknown.
type Opt[T any] struct {
	V  T
	OK bool // V is known
}

// Some is a known value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// Signals are what a model server says of itself, summed over its engines.
type Signals struct {
	// At is when it was asked, Interval how soon it is to be asked again: by the
	// two the signals age. Zero: now, and a second.
	At       time.Time
	Interval time.Duration

	Running, Waiting Opt[float64] // requests
	// KVUsage is the share of the cache blocks that requests hold, 0 to 1.
	KVUsage Opt[float64]
	// BlockSize is in tokens, Blocks the number of them.
	BlockSize, Blocks Opt[int]
	// MaxLoRA is how many adapters can run at once. RunningLoRA and WaitingLoRA
	// are known where it is. No one changes them any more.
	MaxLoRA                  Opt[int]
	RunningLoRA, WaitingLoRA []string
}

// What a server said is believed whole for freshFor intervals and not at all
// after staleAfter; between them less and less.
const (
	freshFor        = 3
	staleAfter      = 10
	defaultInterval = time.Second
)

// reading is Signals as they were taken.
type reading struct {
	Signals
	at, interval time.Duration // at counts from the router's epoch
	// others is how many requests the server had beyond those that were counted
	// here then: other replicas' and other clients'. It can be below 0, where some
	// of ours had not reached it or had left it.
	others float64
}

// trust is how much of r is to be believed at now, from 1 to 0; a nil reading
// is not.
func (r *reading) trust(now time.Duration) float64 {
	if r == nil {
		return 0
	}
	switch age := now - r.at; {
	case age <= freshFor*r.interval:
		return 1
	case age >= staleAfter*r.interval:
		return 0
	default:
		return (staleAfter - float64(age)/float64(r.interval)) / (staleAfter - freshFor)
	}
}

// SetSignals takes what the server at address says of itself; what it says
// nothing of is unknown from now on. An address that is in no pool is passed over.
func (r *Router) SetSignals(address string, s Signals) {
	now := r.clock()
	r.expire(now)
	r.mu.RLock()
	defer r.mu.RUnlock()
	st := r.states[address]
	if st == nil || !st.member {
		return
	}
	next := &reading{Signals: s, at: now, interval: s.Interval}
	if !s.At.IsZero() {
		next.at = min(now, s.At.Sub(r.epoch))
	}
	if next.interval <= 0 {
		next.interval = defaultInterval
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if was := st.reading.Load(); was != nil && was.at > next.at {
		return // an answer that was overtaken
	}
	next.others = s.Running.V + s.Waiting.V - float64(st.counted())
	st.adapters.Store(adapterDigest(&s))
	st.reading.Store(next)
}

// SetHealthy says whether the server at address can take requests at all, as
// far as asking it tells. Endpoints begin healthy.
func (r *Router) SetHealthy(address string, healthy bool) {
	now := r.clock()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if st := r.states[address]; st != nil && st.member {
		st.setHealthy(healthy, now)
	}
}

package route

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// state is what is known of one endpoint, whatever pools it is in. Moments in it
// count from the router's epoch. Its zero value is that of an endpoint that was
// there from the beginning and of which nothing was heard.
type state struct {
	inFlight atomic.Int64 // exchanges. Invariant: >= 0
	expected atomic.Int64 // decisions for it whose exchange another stream is to count
	tokens   atomic.Int64 // of the prompts of both, as estimated. 0 where both are 0
	// turn is the number of the pick that chose it last, 0 if none did.
	turn   atomic.Uint64
	member bool // some pool has it

	adapters atomic.Uint64            // a digest of reading's, see adapterDigest
	reading  atomic.Pointer[reading]  // what the server said of itself last; nil: nothing
	observed atomic.Pointer[observed] // what exchanges showed of it; nil: nothing

	mu       sync.Mutex // guards writes of reading, observed and standing
	standing standing
}

func (s *state) enter(l Load) {
	s.tokens.Add(int64(l.Tokens))
	s.inFlight.Add(1)
}

// leave takes one exchange off the count and tells whether it was the last.
// One too many is the caller's fault and must not make an endpoint look idler
// than it is.
func (s *state) leave(l Load) bool {
	for {
		n := s.inFlight.Load()
		if n == 0 {
			return false
		}
		if s.inFlight.CompareAndSwap(n, n-1) {
			s.tokens.Add(-int64(l.Tokens))
			return n == 1
		}
	}
}

// counted is how many requests at the endpoint this router knows of by itself.
func (s *state) counted() int64 { return s.inFlight.Load() + s.expected.Load() }

// EndpointState is what the router knows of an endpoint of its pools.
type EndpointState struct {
	Address string
	// Pools are the names of the pools that have it, in the order of the names.
	Pools []string
	// InFlight is the number of exchanges that this process counts there, Expected
	// that of decisions whose exchange another is to count, and Tokens the
	// estimated sum of the prompts that are not yet answered.
	InFlight, Expected, Tokens int
	// Signals are what the server said last, and unknown where that is too old.
	Signals Signals
	// Healthy is what SetHealthy said last; Ejected: it failed too often, and
	// gets nothing for a while.
	Healthy, Ejected bool
	// TTFT and TPOT are what exchanges showed, smoothed.
	TTFT, TPOT Opt[time.Duration]
}

// Endpoints returns the endpoints of all pools, in the order of their addresses.
func (r *Router) Endpoints() []EndpointState {
	now := r.clock()
	r.expire(now)
	r.mu.RLock()
	defer r.mu.RUnlock()
	pools := r.table.Load().poolsByAddress()
	out := make([]EndpointState, 0, len(pools))
	for addr, names := range pools {
		s := r.states[addr]
		e := EndpointState{
			Address: addr, Pools: names,
			InFlight: int(s.inFlight.Load()), Expected: int(s.expected.Load()), Tokens: int(s.tokens.Load()),
			Healthy: !s.standing.down.Load(), Ejected: s.standing.ejected(now),
		}
		if in := s.reading.Load(); in.trust(now) > 0 {
			e.Signals = in.Signals
		}
		if o := s.observed.Load(); o != nil {
			e.TTFT, e.TPOT = o.ttft.value(), o.tpot.value()
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b EndpointState) int { return strings.Compare(a.Address, b.Address) })
	return out
}

// poolsByAddress are the names of the pools that each address is in, in order.
func (t *table) poolsByAddress() map[string][]string {
	out := make(map[string][]string)
	for _, name := range names(t.pools) {
		for _, m := range t.pools[name].members.Load().list {
			out[m.addr] = append(out[m.addr], name)
		}
	}
	return out
}

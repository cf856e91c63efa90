package route

import (
	"sync"
	"sync/atomic"
)

// entry is a model's targets. Over any sum-of-weights choices in a row each
// target is chosen exactly its weight's number of times, evenly spread: every
// choice adds the weights to the targets' credits, takes the largest credit,
// and charges it the sum.
type entry struct {
	total int64 // the sum of the weights

	mu      sync.Mutex
	targets []target
}

type target struct {
	pool   *pool
	model  string
	weight int64
	credit int64 // guarded by entry.mu. Invariant: the credits sum to 0
}

func (e *entry) choose() *target {
	if len(e.targets) == 1 {
		return &e.targets[0]
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	best := &e.targets[0]
	for i := range e.targets {
		t := &e.targets[i]
		t.credit += t.weight
		if t.credit > best.credit {
			best = t
		}
	}
	best.credit -= e.total
	return best
}

// pool is a Pool made ready; it does not change, the states of its members do.
type pool struct {
	name    string
	members []member
	index   map[string]int // address to its place in members
}

type member struct {
	addr  string
	state *state
}

func newPool(name string, addrs []string) *pool {
	p := &pool{name: name, members: make([]member, len(addrs)), index: make(map[string]int, len(addrs))}
	for i, a := range addrs {
		p.members[i].addr = a
		p.index[a] = i
	}
	return p
}

// find returns the member at addr in any spelling, nil if there is none. Ports
// count: another port of the same host is another server.
func (p *pool) find(addr string) *member {
	i, ok := p.index[addr]
	if !ok {
		c, err := canonical(addr)
		if err != nil {
			return nil
		}
		if i, ok = p.index[c]; !ok {
			return nil
		}
	}
	return &p.members[i]
}

// pickRetries is how often a pick is repeated when another took the same turn.
const pickRetries = 4

// pick returns the best members of the pool that q allows, best first; none
// where there is none. The first has taken its turn.
func (p *pool) pick(q Request, turns *atomic.Uint64) []string {
	var s shortlist
	for try := 0; ; try++ {
		s.n = 0
		if q.HasSubset {
			for _, addr := range q.Subset {
				if m := p.find(addr); m != nil && !s.has(m) {
					s.offer(m)
				}
			}
		} else {
			for i := range p.members {
				s.offer(&p.members[i])
			}
		}
		if s.n == 0 {
			return nil
		}
		// Who sees the turn moved lost a race for an idle endpoint, and looks
		// again so that requests that come at once do not pile up on one. After
		// some rounds any pick is better than another look.
		c := s.best[0]
		if c.m.state.turn.CompareAndSwap(c.turn, turns.Add(1)) || try == pickRetries {
			return s.addrs()
		}
	}
}

// shortlist keeps the best candidates of those it was offered, best first.
type shortlist struct {
	n    int
	best [MaxCandidates]candidate
}

type candidate struct {
	m    *member
	cost int64  // exchanges in flight
	turn uint64 // its last turn: the longest ago breaks ties
}

func (c candidate) before(d candidate) bool {
	return c.cost < d.cost || c.cost == d.cost && c.turn < d.turn
}

func (s *shortlist) offer(m *member) {
	c := candidate{m: m, cost: m.state.inFlight.Load(), turn: m.state.turn.Load()}
	i := s.n
	if i == len(s.best) {
		if i--; !c.before(s.best[i]) {
			return
		}
	} else {
		s.n++
	}
	for ; i > 0 && c.before(s.best[i-1]); i-- {
		s.best[i] = s.best[i-1]
	}
	s.best[i] = c
}

func (s *shortlist) has(m *member) bool {
	for _, c := range s.best[:s.n] {
		if c.m == m {
			return true
		}
	}
	return false
}

func (s *shortlist) addrs() []string {
	out := make([]string, s.n)
	for i, c := range s.best[:s.n] {
		out[i] = c.m.addr
	}
	return out
}

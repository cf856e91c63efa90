package route

import "sync/atomic"

// pool is a Pool made ready. Its members change as a whole, where they are
// discovered.
type pool struct {
	name, source string
	fallbacks    int
	members      atomic.Pointer[members]
}

// members are the endpoints of a pool at one time. They do not change, their
// states do.
type members struct {
	list  []member
	index map[string]int // address to its place in list
}

type member struct {
	addr   string
	weight int // 1 to MaxWeight
	state  *state
}

func newPool(name, source string, endpoints []Endpoint) *pool {
	p := &pool{name: name, source: source}
	p.members.Store(newMembers(endpoints))
	return p
}

// newMembers makes members, without their states, of endpoints that were
// checked and are distinct.
func newMembers(endpoints []Endpoint) *members {
	m := &members{list: make([]member, len(endpoints)), index: make(map[string]int, len(endpoints))}
	for i, e := range endpoints {
		m.list[i] = member{addr: e.Address, weight: e.Weight}
		m.index[e.Address] = i
	}
	return m
}

// find returns the member at addr in any spelling, nil if there is none. Ports
// count: another port of the same host is another server.
func (m *members) find(addr string) *member {
	i, ok := m.index[addr]
	if !ok {
		c, err := canonical(addr)
		if err != nil {
			return nil
		}
		if i, ok = m.index[c]; !ok {
			return nil
		}
	}
	return &m.list[i]
}

// pickRetries is how often a pick is repeated when another took the same turn.
const pickRetries = 4

// pick returns the best members that q allows, best first; none where there is
// none. The first has taken its turn.
func (m *members) pick(q Request, turns *atomic.Uint64) []string {
	var s shortlist
	for try := 0; ; try++ {
		s.n = 0
		if q.HasSubset {
			for _, addr := range q.Subset {
				if one := m.find(addr); one != nil && !s.has(one) {
					s.offer(one)
				}
			}
		} else {
			for i := range m.list {
				s.offer(&m.list[i])
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

package route

import "sync/atomic"

// pool is a Pool made ready. Its members change as a whole, where they are
// discovered.
type pool struct {
	name, source string
	rules        Rules
	members      atomic.Pointer[members]
	// rotation guards the members' slots: who takes over members takes it over.
	rotation *rotation
	door     door
}

// members are the endpoints of a pool at one time. They do not change, their
// states do.
type members struct {
	list  []member
	index map[string]int // address to its place in list
	even  bool           // all weights are the same
	// latest is the average of them that was made last, where there are too many
	// to make it for each pick; nil: none was.
	latest atomic.Pointer[average]
}

type member struct {
	addr   string
	weight int // 1 to MaxWeight
	// share is weight in relation to the mean of the pool's weights.
	share float64
	seed  uint64 // of addr, for rendezvous
	place int    // in list
	state *state
	slot  *slot
}

func newPool(name, source string, endpoints []Endpoint) *pool {
	p := &pool{name: name, source: source, rotation: new(rotation)}
	p.members.Store(newMembers(endpoints))
	return p
}

// newMembers makes members, without their states, of endpoints that were
// checked and are distinct.
func newMembers(endpoints []Endpoint) *members {
	m := &members{list: make([]member, len(endpoints)), index: make(map[string]int, len(endpoints)), even: true}
	sum := 0
	for _, e := range endpoints {
		sum += e.Weight
	}
	for i, e := range endpoints {
		m.list[i] = member{
			slot: new(slot),
			addr: e.Address, weight: e.Weight, place: i, seed: hash(e.Address),
			share: float64(e.Weight) * float64(len(endpoints)) / float64(sum),
		}
		m.index[e.Address] = i
		m.even = m.even && e.Weight == endpoints[0].Weight
	}
	return m
}

// follow has m take over what was's members have in the pool.
func (m *members) follow(was *members) {
	for i := range m.list {
		if j, stays := was.index[m.list[i].addr]; stays {
			m.list[i].slot = was.list[j].slot
		}
	}
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

package route

import (
	"fmt"
	"slices"
	"strings"
)

// SetEndpoints replaces the endpoints of a pool that has a Source, none too.
// They are taken in canonical spelling and in the order of their addresses, so
// that two replicas that discover the same have the same; of one address that
// is there more than once the largest weight counts. Requests for endpoints
// that left go on and stay counted. It is an error to name a pool that is not
// there or has no Source, or an endpoint that is none; then nothing has changed.
func (r *Router) SetEndpoints(pool string, endpoints []Endpoint) error {
	list, err := checked(endpoints)
	if err != nil {
		return fmt.Errorf("set the endpoints of the pool %q: %w", pool, err)
	}
	m := newMembers(merged(list))
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.table.Load()
	p := t.pools[pool]
	switch {
	case p == nil:
		return fmt.Errorf("set the endpoints of the pool %q: there is no such pool, the pools are %q", pool, names(t.pools))
	case p.source == "":
		return fmt.Errorf("set the endpoints of the pool %q: its endpoints are configured, not discovered", pool)
	}
	if m.same(p.members.Load()) {
		return nil
	}
	// Picks read the members at any moment: they are whole before they are seen.
	m.follow(p.members.Load())
	r.adopt(m)
	p.members.Store(m)
	r.settle(t)
	return nil
}

// adopt gives each of m its state, where it has none yet. r.mu is held.
func (r *Router) adopt(m *members) {
	for i := range m.list {
		one := &m.list[i]
		if one.state != nil {
			continue // seen by picks: it must not be written
		}
		if one.state = r.states[one.addr]; one.state == nil {
			one.state = new(state)
			r.states[one.addr] = one.state
		}
		if !one.state.member {
			one.state.standing.since.Store(int64(r.clock()))
		}
	}
}

// merged returns list in the order of its addresses, each once.
func merged(list []Endpoint) []Endpoint {
	slices.SortFunc(list, func(a, b Endpoint) int {
		if c := strings.Compare(a.Address, b.Address); c != 0 {
			return c
		}
		return b.Weight - a.Weight // the largest first: it stays
	})
	return slices.CompactFunc(list, func(a, b Endpoint) bool { return a.Address == b.Address })
}

// same tells whether m and n are the same endpoints with the same weights.
func (m *members) same(n *members) bool {
	return slices.EqualFunc(m.list, n.list, func(a, b member) bool { return a.addr == b.addr && a.weight == b.weight })
}

package route

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// scanMax is how many endpoints are all looked at for their cost; of more,
	// samples are drawn, of sampleSize. The best of so many is nearly the best, at
	// a price that does not grow with the pool, and replicas that see the same do
	// not all run to the same endpoint.
	scanMax, sampleSize = 256, 16
	// pickRetries is how often a pick is repeated when another took the same turn.
	pickRetries = 4
	// costStep is the difference of costs that counts. Below it endpoints take turns.
	costStep = 0.25
)

// pick is one decision under way. It is reused.
type pick struct {
	all    *members
	rules  *Rules
	now    time.Duration
	mean   average
	random func() uint64
	turns  *atomic.Uint64
	// key is what the request has in common with others, model the adapter that it
	// may be for, as far as the policy goes by them.
	key   uint64
	keyed bool
	model string

	// fit are the members to pick from, as places in all.
	fit  []int
	seen []uint64 // a bit for each place, used for subsets
	list shortlist
}

var picks = sync.Pool{New: func() any { return new(pick) }}

// begin prepares a pick from p, and tells whether there is anything to pick from.
// model is the name that the servers know.
func (k *pick) begin(r *Router, p *pool, q *Request, model string, now time.Duration) bool {
	k.all, k.rules, k.now, k.random = p.members.Load(), &p.rules, now, r.random
	k.turns, k.list.n = &r.turns, 0
	k.key, k.keyed, k.model = 0, false, ""
	switch p.rules.Policy {
	case Prefix:
		k.key, k.keyed = affinity(q, model)
	case LoRA:
		k.model = model
	}
	k.mean = k.all.average(k.rules, now)
	k.collect(q)
	if len(k.fit) == 0 && !k.mean.useAll {
		// None that is allowed is fit, and one that is not is better than none.
		k.mean.useAll = true
		k.collect(q)
	}
	return len(k.fit) > 0
}

// collect finds the members to pick from.
func (k *pick) collect(q *Request) {
	k.fit = k.fit[:0]
	switch {
	case q.HasSubset:
		k.subset(q.Subset)
	case len(k.all.list) > scanMax && k.keyed:
		if k.drawn(); len(k.fit) == 0 {
			k.everyone()
		}
	case len(k.all.list) > scanMax && k.samples():
		if k.sample(sampleSize); len(k.fit) < sampleSize/2 {
			k.fit = k.fit[:0]
			k.everyone()
		}
	default:
		k.everyone()
	}
}

// samples tells whether some of the members do for all of them.
func (k *pick) samples() bool {
	switch k.rules.Policy {
	case RoundRobin:
		return false
	case Random:
		return k.all.even
	default:
		return !k.keyed && k.model == ""
	}
}

func (k *pick) everyone() {
	for i := range k.all.list {
		k.add(i)
	}
}

// sample adds members, each once, until there are n to pick from, or it is hard
// to find one that is fit.
func (k *pick) sample(n int) {
	for tries := 0; len(k.fit) < n && tries < 4*sampleSize; tries++ {
		if i := int(k.random() % uint64(len(k.all.list))); !slices.Contains(k.fit, i) {
			k.add(i)
		}
	}
}

// add takes the member at place i if it is fit, or all have to do.
func (k *pick) add(i int) {
	if k.mean.useAll || k.all.list[i].state.standing.fit(k.now) {
		k.fit = append(k.fit, i)
	}
}

// subset takes the members at addrs, each once.
func (k *pick) subset(addrs []string) {
	words := (len(k.all.list) + 63) / 64
	k.seen = append(k.seen[:0], make([]uint64, words)...)
	for _, addr := range addrs {
		one := k.all.find(addr)
		if one == nil {
			continue
		}
		word, bit := one.place/64, uint64(1)<<(one.place%64)
		if k.seen[word]&bit == 0 {
			k.seen[word] |= bit
			k.add(one.place)
		}
	}
}

// member is the member at place i.
func (k *pick) member(i int) *member { return &k.all.list[i] }

// candidates are the addresses of the shortlist, best first.
func (k *pick) candidates() []string {
	out := make([]string, min(k.list.n, MaxCandidates))
	for i := range out {
		out[i] = k.member(k.list.best[i].place).addr
	}
	return out
}

// shortlist keeps the best candidates of those it was offered, best first.
type shortlist struct {
	n    int
	best [sampleSize]candidate
}

// candidate is a member as a policy sees it: the least rank comes first, among
// equals the least key, and then the one whose last turn is longest ago.
type candidate struct {
	place int
	rank  int
	key   float64
	turn  uint64
}

func (c *candidate) before(d *candidate) bool {
	switch {
	case c.rank != d.rank:
		return c.rank < d.rank
	case c.key != d.key:
		return c.key < d.key
	default:
		return c.turn < d.turn
	}
}

func (s *shortlist) offer(c candidate) {
	i := s.n
	if i == len(s.best) {
		if i--; !c.before(&s.best[i]) {
			return
		}
	} else {
		s.n++
	}
	for ; i > 0 && c.before(&s.best[i-1]); i-- {
		s.best[i] = s.best[i-1]
	}
	s.best[i] = c
}

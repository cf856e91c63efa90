package route

import (
	"math"
	"math/bits"
)

// affinity is what requests have in common that are to go to one endpoint; ok is
// false where q has nothing of the kind: the conversation that it names, else the
// beginning of its prompt, and the model, which caches do not share.
//
// Of the prompt's blocks the largest power of two is taken: while a conversation
// grows, its key changes only when its length has doubled, and no more once all
// blocks are there that are read.
func affinity(q *Request, model string) (key uint64, ok bool) {
	switch {
	case q.Session != "":
		return hash(model, "session", q.Session), true
	case len(q.Prefix) > 0:
		n := 1 << (bits.Len(uint(len(q.Prefix))) - 1)
		return hash(model) ^ mix(q.Prefix[n-1]), true
	}
	return 0, false
}

// byPrefix orders by rendezvous, those that are loaded beyond the pool's bound
// after all others.
func (k *pick) byPrefix() {
	k.list.n = 0
	for _, i := range k.fit {
		k.draw(i)
	}
	drawn := k.list
	k.list.n = 0
	for place, c := range drawn.best[:drawn.n] {
		if !k.bounded(k.member(c.place)) {
			c.rank = 1
		}
		c.key = float64(place)
		k.list.offer(c)
	}
	if k.list.best[0].rank > 0 {
		k.byCost(alike)
	}
}

// draw offers the member at place i by rendezvous: each member draws a number by
// its address and the key, so that replicas agree without talking, and keys move
// only to an endpoint that comes and from one that goes.
func (k *pick) draw(i int) {
	m := k.member(i)
	n := mix(k.key ^ m.seed)
	if k.all.even {
		k.list.offer(candidate{place: i, key: -float64(n)})
	} else {
		k.list.offer(candidate{place: i, key: -math.Log(unit(n)) / m.share})
	}
}

// drawn takes of all members those that draw best, as far as they are fit.
func (k *pick) drawn() {
	k.list.n = 0
	for i := range k.all.list {
		k.draw(i)
	}
	for _, c := range k.list.best[:k.list.n] {
		k.add(c.place)
	}
}

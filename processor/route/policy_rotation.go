package route

import "sync"

// rotation has a pool's endpoints take turns by their shares: each turn of an
// endpoint takes it 1/share further, and the one that is least far is next.
type rotation struct {
	mu sync.Mutex
	// far is how far the endpoint came that had the last turn: one that is less far
	// came later, and has missed no turn.
	far float64
}

// slot is an endpoint's place in the rotation of its pool. Its rotation's mu
// guards it.
type slot struct{ far float64 }

// inTurn orders by whose turn is next. The first has taken its turn.
func (k *pick) inTurn(o *rotation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range k.fit {
		k.list.offer(candidate{place: i, key: max(o.far, k.member(i).slot.far)})
	}
	first := k.member(k.list.best[0].place)
	o.far = k.list.best[0].key
	first.slot.far = o.far + 1/first.effective(k.rules, k.now)
}

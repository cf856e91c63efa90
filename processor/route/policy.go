package route

import "math"

// choose has the pool's policy order the members to pick from.
func (k *pick) choose(p *pool) {
	switch {
	case k.keyed:
		k.byPrefix()
	case k.model != "":
		k.byAdapter()
	case k.rules.Policy == RoundRobin:
		k.inTurn(p.rotation)
	case k.rules.Policy == Random:
		k.byChance()
	default:
		k.byCost(alike)
	}
}

// alike ranks all members alike.
func alike(*member) int { return 0 }

// byCost orders by rank, and then by cost. The first has taken its turn.
func (k *pick) byCost(rank func(*member) int) {
	for try := 0; ; try++ {
		k.list.n = 0
		for _, i := range k.fit {
			m := k.member(i)
			cost := m.cost(k.rules, &k.mean, k.now)
			k.list.offer(candidate{
				place: i, rank: rank(m), key: math.Floor(cost / costStep), turn: m.state.turn.Load(),
			})
		}
		// Who sees the turn moved lost a race for an idle endpoint, and looks again
		// so that requests that come at once do not pile up on one. After some rounds
		// any pick is better than another look.
		best := &k.list.best[0]
		turn := &k.member(best.place).state.turn
		if turn.CompareAndSwap(best.turn, k.turns.Add(1)) || try == pickRetries {
			return
		}
	}
}

// boundSlack is a load that is never too much, in requests: servers batch.
const boundSlack = 2

// bounded tells whether m has no more to do than the pool's load bound allows,
// with the request that is to come. A slow server has more to do with as much.
func (k *pick) bounded(m *member) bool {
	has := (1 + m.load(k.rules, &k.mean, k.now)) * m.pace(&k.mean, k.now)
	return has <= 1+boundSlack+k.rules.LoadBound*k.mean.load
}

// byChance orders at random, by shares: each member waits for a time of its own
// share's rate, and the first comes first.
func (k *pick) byChance() {
	for _, i := range k.fit {
		k.list.offer(candidate{place: i, key: -math.Log(unit(k.random())) / k.member(i).effective(k.rules, k.now)})
	}
}

// unit is a number above 0 and below 1 by the top 53 bits of h, which a float64
// holds.
func unit(h uint64) float64 { return (float64(h>>11) + 0.5) / (1 << 53) }

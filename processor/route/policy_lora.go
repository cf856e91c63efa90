package route

import (
	"slices"
	"time"
)

// How well a server suits an adapter. One of which nothing is known is worth
// trying before one that would have to make room.
const (
	adapterRuns    = iota
	adapterFits    // there is room for it
	adapterWaits   // it is in the queue, or nothing is known
	adapterTooMany // another has to go first
	adapterClasses
)

// adapterClass says how well s suits the adapter.
func (s *state) adapterClass(adapter string, now time.Duration) int {
	in := s.reading.Load()
	switch {
	case in.trust(now) == 0 || !in.MaxLoRA.OK:
		return adapterWaits
	case slices.Contains(in.RunningLoRA, adapter):
		return adapterRuns
	case len(in.RunningLoRA) < in.MaxLoRA.V:
		return adapterFits
	case slices.Contains(in.WaitingLoRA, adapter):
		return adapterWaits
	default:
		return adapterTooMany
	}
}

// A digest of what a server says of its adapters tells, without a look at their
// names, whether it may run one: each name that runs has a bit of digestNames. 0:
// it says nothing.
const (
	digestKnown = 1 << 63
	digestRoom  = 1 << 62
	digestNames = 62
)

func adapterDigest(s *Signals) uint64 {
	if !s.MaxLoRA.OK {
		return 0
	}
	d := uint64(digestKnown)
	if len(s.RunningLoRA) < s.MaxLoRA.V {
		d |= digestRoom
	}
	for _, name := range s.RunningLoRA {
		d |= digestBit(name)
	}
	return d
}

func digestBit(adapter string) uint64 { return 1 << (mix(hash(adapter)) % digestNames) }

// byAdapter orders by how well the members suit the adapter, and then by cost.
// Those that are loaded beyond the pool's bound come after all others.
func (k *pick) byAdapter() {
	if len(k.fit) > scanMax {
		k.suitable()
	}
	k.byCost(func(m *member) int {
		rank := m.state.adapterClass(k.model, k.now)
		if !k.bounded(m) {
			rank += adapterClasses
		}
		return rank
	})
}

// suitable leaves some of the members that by their digests suit the adapter best,
// and as many others, in case those have too much to do.
func (k *pick) suitable() {
	bit := digestBit(k.model)
	for _, i := range k.fit {
		s := k.member(i).state
		rank := adapterWaits
		switch digest := s.adapters.Load(); {
		case digest == 0:
		case digest&bit != 0:
			rank = adapterRuns
		case digest&digestRoom != 0:
			rank = adapterFits
		default:
			rank = adapterTooMany
		}
		k.list.offer(candidate{place: i, rank: rank, turn: s.turn.Load()})
	}
	k.fit = k.fit[:0]
	for _, c := range k.list.best[:k.list.n] {
		k.fit = append(k.fit, c.place)
	}
	k.sample(len(k.fit) + sampleSize)
}

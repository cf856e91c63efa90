package meter

import "time"

// Inter-token latency and chunk gaps, definitions 3.

// instant is the evidence events of one choice that have one arrival time: one
// frame, or pieces of one. Their tokens add up.
type instant struct {
	at     time.Duration
	tokens int64
	// unknown: of one of them the number of tokens is not known.
	unknown bool
}

// gaps is what the gaps between instants came to, over all choices. The last
// instant of a choice can still grow; it is added when the next one begins, or
// when a record is made.
type gaps struct {
	bounds   []time.Duration
	itl, gap Gaps
	// counted is the tokens of all evidence events, an unknown number as one;
	// anyUnknown tells that there was one.
	counted    int64
	anyUnknown bool
	stalls     int
}

// instant takes the tokens of an evidence event; 0: not known.
func (m *Meter) instant(c *choice, at time.Duration, tokens int64) {
	m.gaps.counted += max(tokens, 1)
	m.gaps.anyUnknown = m.gaps.anyUnknown || tokens == 0
	if c.instants > 0 && at == c.current.at {
		c.current.add(tokens)
	} else {
		if c.instants > 1 {
			m.gaps.add(c.lastGap, c.current)
		}
		if c.instants > 0 {
			c.lastGap = at - c.current.at
			m.stall(c, at, c.lastGap)
		}
		c.instants++
		c.current = instant{at: at}
		c.current.add(tokens)
	}
	if c.instants == 1 {
		c.first = c.current
	}
}

func (i *instant) add(tokens int64) {
	i.tokens += tokens
	i.unknown = i.unknown || tokens == 0
}

// add takes an instant and the gap before it: as many samples of ITL as it has
// tokens, which share the gap, or one where their number is not known; and one
// chunk gap.
func (g *gaps) add(gap time.Duration, i instant) {
	samples := i.tokens
	if i.unknown {
		samples = 1
	}
	g.itl.add(g.bounds, gap, samples, i.unknown)
	g.gap.add(g.bounds, gap, 1, i.unknown)
}

// add takes n samples that together are sum.
func (g *Gaps) add(bounds []time.Duration, sum time.Duration, n int64, assumed bool) {
	buckets := &g.Exact
	if assumed {
		buckets = &g.Assumed
	}
	if *buckets == nil {
		*buckets = make([]GapBucket, len(bounds)+1)
	}
	each := sum / time.Duration(n)
	i := 0
	for i < len(bounds) && each > bounds[i] {
		i++
	}
	(*buckets)[i].Count += n
	(*buckets)[i].Sum += sum
}

// clone returns a copy that shares nothing.
func (g Gaps) clone() Gaps {
	return Gaps{
		Exact:   append([]GapBucket(nil), g.Exact...),
		Assumed: append([]GapBucket(nil), g.Assumed...),
	}
}

// gapsSoFar returns the gaps with the last instants of the choices.
func (m *Meter) gapsSoFar() (itl, gap Gaps) {
	g := gaps{bounds: m.gaps.bounds, itl: m.gaps.itl.clone(), gap: m.gaps.gap.clone()}
	for _, c := range m.choices.all {
		if c != nil && c.instants > 1 {
			g.add(c.lastGap, c.current)
		}
	}
	return g.itl, g.gap
}

// itlVoid tells that the exchange gives no ITL: final usage exceeds the count
// that was assumed by more than 2 and 10 %.
func (m *Meter) itlVoid() bool {
	u := m.usage.completion
	if !u.OK || !m.gaps.anyUnknown {
		return false
	}
	excess := u.V - m.gaps.counted
	return excess > 2 && excess*10 > m.gaps.counted
}

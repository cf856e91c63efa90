package meter

import (
	"math"
	"time"
)

const (
	// shortestStall is the shortest gap that is a stall, stallFactor how much
	// longer than the choice's median it is.
	shortestStall = 500 * time.Millisecond
	stallFactor   = 8
)

// stall counts a gap that is one, definitions 3, and then takes it into the
// choice's running median.
func (m *Meter) stall(c *choice, at, gap time.Duration) {
	if gap > max(shortestStall, stallFactor*c.pace.median()) {
		m.gaps.stalls++
		m.mark(Mark{At: at, Kind: MarkStall, Gap: gap})
	}
	c.pace.add(gap)
}

// pace is the gaps of a choice, for their running median. It only has to be
// right where it makes a stall longer than the shortest: gaps too small for
// that are counted together, the others by size, four classes to a doubling,
// and the median is the mean of its class.
type pace struct {
	fast  int64
	total int64
	slow  *[paceClasses]paceClass // nil before the first slow gap
}

type paceClass struct {
	count int64
	sum   time.Duration
}

const (
	paceFast    = shortestStall / stallFactor
	paceClasses = 4 * 12 // up to 4 minutes; longer ones count with the last
)

func (p *pace) add(gap time.Duration) {
	p.total++
	if gap <= paceFast {
		p.fast++
		return
	}
	if p.slow == nil {
		p.slow = new([paceClasses]paceClass)
	}
	class := int(4 * math.Log2(float64(gap)/float64(paceFast)))
	k := &p.slow[min(class, paceClasses-1)]
	k.count++
	k.sum += gap
}

// median returns the running median; 0 where it is too small to matter.
func (p *pace) median() time.Duration {
	below := p.fast
	if p.slow == nil || below*2 >= p.total {
		return 0
	}
	for i := range p.slow {
		k := &p.slow[i]
		below += k.count
		if below*2 >= p.total {
			return k.sum / time.Duration(max(k.count, 1))
		}
	}
	return 0
}

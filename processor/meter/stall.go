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
// that are counted together, the others by size, three classes to a doubling,
// and the median is the mean of its class.
type pace struct {
	fast, total int64
	slow        *[paceClasses]paceClass // nil before the first slow gap
}

// paceClass is kept small, as there is one for each class of each choice.
type paceClass struct {
	count uint32
	sum   uint32 // of paceUnit; 119 hours and more stay there
}

const (
	paceFast    = shortestStall / stallFactor
	paceUnit    = 100 * time.Microsecond
	perDoubling = 3
	paceClasses = perDoubling * 11 // up to two minutes; longer ones count with the last
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
	class := int(perDoubling * math.Log2(float64(gap)/float64(paceFast)))
	k := &p.slow[min(class, paceClasses-1)]
	if sum := int64(k.sum) + int64(gap/paceUnit); sum <= math.MaxUint32 {
		k.count++
		k.sum = uint32(sum)
	}
}

// median returns the running median; 0 where it is too small to matter.
func (p *pace) median() time.Duration {
	below := p.fast
	if p.slow == nil || below*2 >= p.total {
		return 0
	}
	for i := range p.slow {
		k := &p.slow[i]
		below += int64(k.count)
		if k.count > 0 && below*2 >= p.total {
			return time.Duration(k.sum) * paceUnit / time.Duration(k.count)
		}
	}
	return 0
}

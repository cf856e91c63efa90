package meter

import "time"

// The clocks of definitions 3, all relative to the origin.

type clocks struct {
	firstByte, firstEvent, role Opt[time.Duration]
	firstToken, firstAnswer     Opt[time.Duration]
	lastToken, longestGap       Opt[time.Duration]
	firstKind                   Kind
}

// once sets a clock that stands still after its first time.
func once(clock *Opt[time.Duration], at time.Duration) bool {
	if clock.OK {
		return false
	}
	*clock = Some(at)
	return true
}

// firstByte: the first body byte, keep-alives included.
func (m *Meter) firstByte(at time.Duration) Milestone {
	if once(&m.clocks.firstByte, at) {
		return ReachedFirstByte
	}
	return 0
}

// firstEvent: the first event of any kind.
func (m *Meter) firstEvent(at time.Duration) Milestone {
	if once(&m.clocks.firstEvent, at) {
		return ReachedFirstEvent
	}
	return 0
}

// firstRole: the first event with a role, with or without text.
func (m *Meter) firstRole(at time.Duration) { once(&m.clocks.role, at) }

// firstToken: the first evidence of any kind, which is TTFT, and the first that
// is a part of the answer. The last evidence moves on.
func (m *Meter) firstToken(at time.Duration, k Kind) Milestone {
	var reached Milestone
	c := &m.clocks
	if once(&c.firstToken, at) {
		c.firstKind = k
		reached |= ReachedFirstToken
	}
	if k == KindContent || k == KindToolCall || k == KindToken {
		if once(&c.firstAnswer, at) {
			reached |= ReachedFirstAnswer
		}
	}
	c.lastToken = Some(at)
	return reached
}

// evidenceAt counts an evidence event of the choice. later tells that there was
// one before, gap how long ago.
func (c *choice) evidenceAt(at time.Duration) (gap time.Duration, later bool) {
	if later = c.events > 0; later {
		gap = at - c.lastAt
	}
	c.events++
	c.lastAt = at
	return gap, later
}

// longest keeps the longest time between two consecutive evidence events of one
// choice.
func (c *clocks) longest(gap time.Duration, later bool) {
	if later && (!c.longestGap.OK || gap > c.longestGap.V) {
		c.longestGap = Some(gap)
	}
}

package meter

import (
	"encoding/binary"
	"time"
)

const (
	// maxSlots is the number of slots of a timeline.
	maxSlots = 512
	// timelineUnit is the unit of its gaps.
	timelineUnit = 100 * time.Microsecond
)

// timeline is a stream in a bounded number of slots: all choices merged, in time
// order. What arrives at one time is one instant; a slot holds stride of them
// and sums their gaps and tokens. When the slots are used up, each two become
// one.
//
// Nearly all slots are two small numbers, which as varints take three bytes
// instead of eight: it is the largest part of what a live stream holds.
type timeline struct {
	before []byte // the slots before the last, gap and tokens of each
	last   slot
	slots  int // the last included
	inLast int // instants in the last slot
	stride int // 0 before the first instant
	at     time.Duration
}

// slot is a gap in timelineUnit, and tokens. Both stop at the largest int32.
type slot struct{ gap, tokens int32 }

func (s *slot) add(gap, tokens int64) {
	s.gap, s.tokens = clamp32(int64(s.gap)+gap), clamp32(int64(s.tokens)+tokens)
}

func appendSlot(b []byte, s slot) []byte {
	b = binary.AppendUvarint(b, uint64(s.gap))
	return binary.AppendUvarint(b, uint64(s.tokens))
}

// cutSlot returns the first slot of b, and the rest.
func cutSlot(b []byte) (s slot, rest []byte) {
	gap, n := binary.Uvarint(b)
	tokens, m := binary.Uvarint(b[n:])
	return slot{int32(gap), int32(tokens)}, b[n+m:]
}

// add takes tokens that arrived at at; an unknown number counts as one. The
// first instant has no gap. Gaps are differences of rounded times, so that their
// sum does not drift.
func (t *timeline) add(at time.Duration, tokens int64) {
	if t.stride == 0 {
		t.stride, t.at = 1, at
	} else if at == t.at {
		t.last.add(0, tokens)
		return
	}
	if t.slots == maxSlots && t.inLast == t.stride {
		t.halve()
	}
	if t.slots == 0 || t.inLast == t.stride {
		if t.slots > 0 {
			t.before = appendSlot(t.before, t.last)
		}
		t.last = slot{}
		t.slots++
		t.inLast = 0
	}
	t.last.add(int64(at/timelineUnit-t.at/timelineUnit), tokens)
	t.inLast++
	t.at = at
}

// halve makes each two slots one. All are full, so the last of them is too.
func (t *timeline) halve() {
	rest := appendSlot(t.before, t.last)
	// What two slots become takes no more room than they did.
	t.before = rest[:0]
	for i := range maxSlots / 2 {
		if i > 0 {
			t.before = appendSlot(t.before, t.last)
		}
		var second slot
		t.last, rest = cutSlot(rest)
		second, rest = cutSlot(rest)
		t.last.add(int64(second.gap), int64(second.tokens))
	}
	t.slots /= 2
	t.stride *= 2
	t.inLast = t.stride
}

// result returns a copy of what is used.
func (t *timeline) result() Timeline {
	if t.slots == 0 {
		return Timeline{}
	}
	out := Timeline{Gaps100us: make([]int32, t.slots), Tokens: make([]int32, t.slots), Stride: t.stride}
	rest := t.before
	for i := range t.slots {
		s := t.last
		if i < t.slots-1 {
			s, rest = cutSlot(rest)
		}
		out.Gaps100us[i], out.Tokens[i] = s.gap, s.tokens
	}
	return out
}

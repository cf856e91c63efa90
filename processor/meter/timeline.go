package meter

import "time"

const (
	// maxSlots is the number of slots of a timeline.
	maxSlots = 512
	// timelineUnit is the unit of its gaps.
	timelineUnit = 100 * time.Microsecond
)

// timeline is a stream in a fixed number of slots: all choices merged, in time
// order. What arrives at one time is one instant; a slot holds stride of them
// and sums their gaps and tokens. When the slots are used up, each two become
// one.
type timeline struct {
	gaps, tokens [maxSlots]int32
	slots        int
	inLast       int // instants in the last slot
	stride       int // 0 before the first instant
	at           time.Duration
}

// add takes tokens that arrived at at; an unknown number counts as one. The
// first instant has no gap. Gaps are differences of rounded times, so that their
// sum does not drift.
func (t *timeline) add(at time.Duration, tokens int64) {
	if t.stride == 0 {
		t.stride, t.at = 1, at
	} else if at == t.at {
		last := &t.tokens[t.slots-1]
		*last = clamp32(int64(*last) + tokens)
		return
	}
	if t.slots == maxSlots && t.inLast == t.stride {
		t.halve()
	}
	if t.slots == 0 || t.inLast == t.stride {
		t.gaps[t.slots], t.tokens[t.slots] = 0, 0
		t.slots++
		t.inLast = 0
	}
	i := t.slots - 1
	t.gaps[i] = clamp32(int64(t.gaps[i]) + int64(at/timelineUnit-t.at/timelineUnit))
	t.tokens[i] = clamp32(int64(t.tokens[i]) + tokens)
	t.inLast++
	t.at = at
}

// halve makes each two slots one. All are full, so the last of them is too.
func (t *timeline) halve() {
	for i := range maxSlots / 2 {
		t.gaps[i] = clamp32(int64(t.gaps[2*i]) + int64(t.gaps[2*i+1]))
		t.tokens[i] = clamp32(int64(t.tokens[2*i]) + int64(t.tokens[2*i+1]))
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
	return Timeline{
		Gaps100us: append([]int32(nil), t.gaps[:t.slots]...),
		Tokens:    append([]int32(nil), t.tokens[:t.slots]...),
		Stride:    t.stride,
	}
}

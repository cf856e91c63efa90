package meter

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// defaultChunks is the number of chunk marks kept.
	defaultChunks = 64
	// maxOtherMarks bounds the milestones that can come again and again: stalls
	// and errors. The first are kept; all are counted.
	maxOtherMarks = 32
)

// tape is the memory for what a stream leaves behind. It is used again for
// another exchange.
type tape struct {
	chunks chunkMarks // every stride-th evidence event
	stride int64
	total  int64 // of evidence events
	others []Mark
	line   timeline
}

var tapes = sync.Pool{New: func() any { return new(tape) }}

// onTape returns the exchange's tape.
func (m *Meter) onTape() *tape {
	if m.tape == nil {
		m.tape, _ = tapes.Get().(*tape) // the pool has no others
	}
	return m.tape
}

// release gives the tape back; nothing may refer to it any more.
func (t *tape) release() {
	if t == nil {
		return
	}
	*t = tape{
		chunks: chunkMarks{packed: t.chunks.packed[:0]},
		others: t.others[:0],
		line:   timeline{before: t.line.before[:0]},
	}
	tapes.Put(t)
}

// mark keeps a milestone that can come several times.
func (m *Meter) mark(k Mark) {
	if t := m.onTape(); len(t.others) < maxOtherMarks {
		t.others = append(t.others, k)
	}
}

// markChunk keeps an evidence event, and thins those kept as the stream grows:
// when there is no more room, every second gives way, and from then on only
// every second of those to come is kept.
func (m *Meter) markChunk(at time.Duration, index int, c *choice, tokens int64, size int, gap time.Duration) {
	t := m.onTape()
	t.line.add(at, max(tokens, 1))
	limit := m.options.MaxChunks
	if limit <= 0 {
		limit = defaultChunks
	}
	t.stride = max(t.stride, 1)
	n := t.total
	t.total++
	if n%t.stride != 0 {
		return
	}
	if t.chunks.n >= limit {
		t.chunks.thin()
		t.stride *= 2
		if n%t.stride != 0 {
			return
		}
	}
	t.chunks.add(Mark{
		At: at, Kind: MarkChunk, Choice: int32(index), Index: clamp32(c.events - 1),
		Tokens: clamp32(tokens), Bytes: clamp32(int64(size)), Gap: gap,
	})
}

// marks returns the milestones and the kept chunks in time order, and how many
// chunks gave way.
func (m *Meter) marks(r *Record) ([]Mark, int64) {
	var list []Mark
	milestone := func(k MarkKind, at Opt[time.Duration]) {
		if at.OK {
			list = append(list, Mark{At: at.V, Kind: k})
		}
	}
	milestone(MarkFirstByte, r.FirstByte)
	milestone(MarkRole, r.Role)
	milestone(MarkFirstToken, r.FirstToken)
	milestone(MarkFirstAnswer, r.FirstAnswer)
	var thinned int64
	if t := m.tape; t != nil {
		list = t.chunks.appendTo(list)
		list = append(list, t.others...)
		thinned = t.total - int64(t.chunks.n)
	}
	milestone(MarkLastToken, r.LastToken)
	for i, c := range m.choices.all {
		if c != nil && c.finish.OK {
			list = append(list, Mark{At: c.finishAt, Kind: MarkFinish, Choice: int32(i)})
		}
	}
	milestone(MarkUsage, m.usage.final)
	if r.Outcome == ClientCancelled || r.Outcome == ClientCancelledAfterFinish {
		milestone(MarkCancelled, Some(r.End))
	}
	slices.SortStableFunc(list, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	return list, thinned
}

// clamp32 returns n, or the largest that fits.
func clamp32(n int64) int32 { return int32(min(n, 1<<31-1)) }

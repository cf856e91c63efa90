package telemetry

import (
	"sync"
	"unsafe"

	"github.com/inferspan/inferspan/processor/meter"
)

// entry is a record that waits, with what it takes.
type entry struct {
	record *meter.Record
	bytes  int // in memory, estimated
	wire   int // as spans in OTLP, estimated
	spans  int // how many spans it becomes
	rules  *rules
	verdict
}

// queue holds records, bounded in bytes and in spans. What was taken counts
// until it is released, so that the bound holds for what is being exported too.
// It is safe for concurrent use.
type queue struct {
	// ready has a token when there is something new to take, or the queue was
	// closed.
	ready    chan struct{}
	maxBytes int
	maxSpans int // 0: no bound

	mu      sync.Mutex
	entries []entry
	bytes   int // Invariant: 0 <= bytes <= maxBytes
	spans   int
	closed  bool
}

func newQueue(maxBytes, maxSpans int) *queue {
	return &queue{ready: make(chan struct{}, 1), maxBytes: maxBytes, maxSpans: maxSpans}
}

// put appends e. It returns false, and keeps nothing, where e has no room or
// the queue is closed; closed tells the two apart.
func (q *queue) put(e entry) (ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, true
	}
	if q.bytes+e.bytes > q.maxBytes || q.maxSpans > 0 && q.spans+e.spans > q.maxSpans {
		return false, false
	}
	q.entries = append(q.entries, e)
	q.bytes += e.bytes
	q.spans += e.spans
	q.signal()
	return true, false
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the oldest entries that together have at most maxSpans spans and
// maxWire bytes of OTLP, but at least one where there is one. more tells whether
// others wait.
func (q *queue) take(maxSpans, maxWire int) (batch []entry, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, _ := q.fitting(maxSpans, maxWire)
	batch = append(batch, q.entries[:n]...)
	clear(q.entries[:n])
	q.entries = q.entries[n:]
	return batch, len(q.entries) > 0
}

// hasFull tells whether what waits fills a batch.
func (q *queue) hasFull(maxSpans, maxWire int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, full := q.fitting(maxSpans, maxWire)
	return full
}

func (q *queue) fitting(maxSpans, maxWire int) (n int, full bool) {
	spans, wire := 0, 0
	for i, e := range q.entries {
		spans += e.spans
		wire += e.wire
		if i > 0 && (spans > maxSpans || wire > maxWire) {
			return i, true
		}
	}
	return len(q.entries), spans >= maxSpans || wire >= maxWire
}

// release gives back the room of what was taken.
func (q *queue) release(batch []entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range batch {
		q.bytes -= e.bytes
		q.spans -= e.spans
	}
}

// waiting is how many spans are there, those that are being exported included.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spans
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Sizes of one item in OTLP, with its attributes, measured on exported spans.
const (
	wireSpan  = 1400
	wireEvent = 160
	wireSlot  = 12 // one slot of the timeline: a gap and its tokens
)

// newEntry estimates what r takes, which ended while by were the rules.
func newEntry(r *meter.Record, by *rules) entry {
	text := len(r.RequestID) + len(r.Path) + len(r.RequestModel.V) + len(r.Model.V) + len(r.ResponseID.V) +
		len(r.ErrorType) + len(r.Trace.State) + len(r.Asked.Model) +
		len(r.Route.Endpoint) + len(r.Route.Served) + len(r.Route.Pool)
	for _, c := range r.Route.Candidates {
		text += len(c) + int(unsafe.Sizeof(c))
	}
	for _, f := range r.Finish {
		text += len(f.V) + int(unsafe.Sizeof(f))
	}
	for _, c := range r.Captured {
		text += len(c.Value) + int(unsafe.Sizeof(c))
	}
	bytes := int(unsafe.Sizeof(*r)) + text +
		cap(r.Marks)*int(unsafe.Sizeof(meter.Mark{})) +
		(cap(r.Timeline.Gaps100us)+cap(r.Timeline.Tokens))*4 +
		(cap(r.ITL.Exact)+cap(r.ITL.Assumed)+cap(r.Gap.Exact)+cap(r.Gap.Assumed))*int(unsafe.Sizeof(meter.GapBucket{})) +
		cap(r.TPOT)*int(unsafe.Sizeof(meter.TPOTSample{})) +
		cap(r.EvidenceEvents)*8
	e := entry{record: r, bytes: bytes, spans: 1, rules: by}
	e.wire = wireSpan + text + len(r.Marks)*wireEvent + len(r.Timeline.Gaps100us)*wireSlot
	if routed(r) {
		e.spans++
		e.wire += wireSpan / 4
	}
	if by.show.engineSpans {
		phases := len(enginePhases(r))
		e.spans += phases
		e.wire += phases * wireSpan / 8
	}
	return e
}

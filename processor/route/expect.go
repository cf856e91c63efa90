package route

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what is expected: how many at once, and for how long.
const (
	maxExpected    = 1 << 16
	minExpectation = 50 * time.Millisecond
	maxExpectation = time.Minute
	// defaultExpectation is for endpoints whose time to response headers nobody
	// saw.
	defaultExpectation = time.Second
)

// expectations are the decisions whose exchange another stream is to count: each
// is one at its endpoint until that stream is known to be here, or until it would
// be known elsewhere. There is no goroutine: what is over is let go whenever
// somebody looks.
type expectations struct {
	next atomic.Int64 // the earliest deadline; 0: there is none

	mu     sync.Mutex
	bySpan map[[8]byte]*expectation
	// queue has those of bySpan, and some that were met, by their deadlines.
	queue deadlines
}

// expectation is one decision. It counts in its state until met is set.
type expectation struct {
	span     [8]byte
	state    *state
	tokens   int64
	deadline time.Duration
	made     *reading // what the endpoint's server had said then
	met      bool
}

type deadlines []*expectation

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline < d[j].deadline }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(*expectation)) } //nolint:forcetypeassert // heap gives what it was given
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last], *d = nil, (*d)[:last]
	return e
}

// Expect counts one request at the endpoint of l that another stream, here or at
// another replica, is to count: until Arrived is called for its span, or the
// endpoint's smoothed time to response headers has passed. A span is expected
// once.
func (r *Router) Expect(span [8]byte, l Load) {
	now := r.clock()
	r.expire(now)
	r.mu.RLock()
	s := r.states[l.Endpoint]
	r.mu.RUnlock()
	if s == nil {
		return
	}
	x := &r.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bySpan[span] != nil {
		return
	}
	if len(x.queue) == maxExpected {
		x.release(heap.Pop(&x.queue).(*expectation)) //nolint:forcetypeassert // it holds nothing else
	}
	e := &expectation{
		span: span, state: s, tokens: int64(l.Tokens), deadline: now + patience(s), made: s.reading.Load(),
	}
	if x.bySpan == nil {
		x.bySpan = make(map[[8]byte]*expectation)
	}
	x.bySpan[span] = e
	s.tokens.Add(e.tokens)
	s.expected.Add(1)
	heap.Push(&x.queue, e)
	x.next.Store(int64(x.queue[0].deadline))
}

// Arrived ends what is expected of span: the stream that counts it is here, and
// counts it by Begin.
func (r *Router) Arrived(span [8]byte) {
	x := &r.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.bySpan[span]; e != nil {
		x.release(e)
	}
}

// expire ends what was expected until now or earlier: its exchange is counted
// elsewhere by now, and the server's own counts show it.
func (r *Router) expire(now time.Duration) {
	x := &r.expected
	if next := x.next.Load(); next == 0 || int64(now) < next {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.queue) > 0 && x.queue[0].deadline <= now {
		e := heap.Pop(&x.queue).(*expectation) //nolint:forcetypeassert // it holds nothing else
		if e.met {
			continue
		}
		x.release(e)
		e.state.elsewhere(e.made)
	}
	next := int64(0)
	if len(x.queue) > 0 {
		next = int64(x.queue[0].deadline)
	}
	x.next.Store(next)
}

// release ends e, once. x.mu is held.
func (x *expectations) release(e *expectation) {
	if e.met {
		return
	}
	e.met = true
	delete(x.bySpan, e.span)
	e.state.expected.Add(-1)
	e.state.tokens.Add(-e.tokens)
}

// patience is how long a request for s is expected.
func patience(s *state) time.Duration {
	d := defaultExpectation
	if o := s.observed.Load(); o != nil && o.headers > 0 {
		d = time.Duration(o.headers)
	}
	return min(max(d, minExpectation), maxExpectation)
}

// elsewhere notes that a request that was expected is counted by another
// replica. If the server was asked since, it is in what the server said, and was
// taken off there.
func (s *state) elsewhere(made *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.reading.Load(); r != made && r != nil {
		next := *r
		next.others++
		s.reading.Store(&next)
	}
}

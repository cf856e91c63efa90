package route

import (
	"sync/atomic"
	"time"
)

// standing is whether an endpoint is fit to be picked. It is in one of three
// states. One that is fit and fails too often is ejected until a moment. Once that
// has passed it is on probation: one failure has it ejected for longer, and one
// success makes it fit. Beside that its server can say that it is down.
//
// What exchanges show while the endpoint is ejected began before, and counts for
// nothing. Picks read the atomics; state.mu guards all writes and the rest.
type standing struct {
	down  atomic.Bool  // asked whether it is well, the server says no, or nothing
	until atomic.Int64 // it is ejected until then; 0: it never was
	// since is when it last came, or came back; 0: it was there from the beginning.
	since atomic.Int64

	probation bool
	inRow     int // failures since the last success. Invariant: 0 on probation
	// times is how often it was ejected, less what it made good, and term how long
	// it was the last time.
	times int
	term  time.Duration

	// window is when the exchanges of the rate began, of which failed of all failed.
	window      time.Duration
	all, failed int
}

const (
	// rateWindow is over how long the rate of failures is taken, and rateLeast the
	// number of exchanges that it needs.
	rateWindow = 10 * time.Second
	rateLeast  = 20
	// maxTimes bounds what can be remembered against an endpoint.
	maxTimes = 30
)

func (s *standing) ejected(now time.Duration) bool { return int64(now) < s.until.Load() }

func (s *standing) fit(now time.Duration) bool { return !s.down.Load() && !s.ejected(now) }

// note takes how one exchange went, and tells whether the endpoint is to be
// ejected for it by e. An exchange that shows neither is none of these.
func (s *standing) note(e *Eject, success, failure bool, now time.Duration) (eject bool) {
	if s.ejected(now) || !success && !failure {
		return false
	}
	if now-s.window >= rateWindow {
		s.window, s.all, s.failed = now, 0, 0
	}
	s.all++
	if success {
		s.inRow, s.probation = 0, false
		return false
	}
	s.failed++
	if s.probation {
		return true
	}
	s.inRow++
	return e.Failures > 0 && s.inRow >= e.Failures ||
		e.Rate > 0 && s.all >= rateLeast && float64(s.failed) >= e.Rate*float64(s.all)
}

// eject ejects the endpoint by e.
func (s *standing) eject(e *Eject, now time.Duration) {
	if s.term > 0 {
		well := now - time.Duration(s.until.Load())
		s.times = max(0, s.times-int(well/s.term))
	}
	s.term = e.Base
	for range s.times {
		s.term = min(e.Max, 2*s.term)
	}
	s.times = min(s.times+1, maxTimes)
	s.inRow, s.all, s.failed, s.probation = 0, 0, 0, true
	s.until.Store(int64(now + s.term))
	s.since.Store(int64(now + s.term))
}

// setHealthy notes whether the server says that it is well.
func (s *state) setHealthy(healthy bool, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.standing.down.Swap(!healthy); was && healthy {
		s.standing.since.Store(max(s.standing.since.Load(), int64(now)))
	}
}

// mayEject tells whether one more of m may be ejected by e at now.
func (m *members) mayEject(e *Eject, now time.Duration) bool {
	n := 1
	for i := range m.list {
		if m.list[i].state.standing.ejected(now) {
			n++
		}
	}
	return float64(n) <= e.Share*float64(len(m.list))
}

package route

import (
	"sync/atomic"
	"time"
)

// standing is whether an endpoint may be picked.
type standing struct {
	down  atomic.Bool  // asked whether it is well, the server says no, or nothing
	until atomic.Int64 // it is ejected until then
	// since is when it last came, or came back; 0: it was there from the beginning.
	since atomic.Int64
}

func (s *standing) ejected(now time.Duration) bool { return int64(now) < s.until.Load() }

// note takes the result of one exchange. The state's mu is held.
func (s *standing) note(Failure, time.Duration) {}

func (s *state) setHealthy(healthy bool, now time.Duration) {
	if was := s.standing.down.Swap(!healthy); was && healthy {
		s.standing.since.Store(int64(now))
	}
}

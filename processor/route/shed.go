package route

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Shed says from when on a pool refuses requests rather than let them wait. The
// zero value refuses none.
type Shed struct {
	Limits        // where reached, requests of a priority below 0 are refused
	Hard   Limits // where reached, all are
}

// Limits are reached where each endpoint that could be picked is at one of them
// or beyond. 0 is no limit; what is not known reaches none.
type Limits struct {
	InFlight int     // requests at the endpoint, also those of others that it tells of
	Queue    int     // those of them that wait
	KVUsage  float64 // share of its cache blocks that requests hold
}

func (s Shed) check() error {
	for _, l := range []Limits{s.Limits, s.Hard} {
		if l.InFlight < 0 || l.Queue < 0 || l.KVUsage < 0 || l.KVUsage > 1 || math.IsNaN(l.KVUsage) {
			return fmt.Errorf("shed: %+v: want limits from 0, and the cache's to 1", l)
		}
	}
	return nil
}

// door refuses the requests of a pool, where it has a Shed.
type door struct {
	shed       Shed
	soft, hard spell // how long the limits have been reached
	empty      spell // how long there has been no endpoint to pick
}

// follow has d go on from what was saw: a pool is no less full for being
// configured anew.
func (d *door) follow(was *door) {
	d.soft.since.Store(was.soft.since.Load())
	d.hard.since.Store(was.hard.since.Load())
	d.empty.since.Store(was.empty.since.Load())
}

// refuse returns why the pool p refuses q at now; nil where it does not.
func (p *pool) refuse(q *Request, now time.Duration) *Rejection {
	d := &p.door
	if d.shed == (Shed{}) {
		return nil
	}
	m := p.members.Load()
	// Both are looked at each time, so that each knows how long it has been.
	soft, hard := m.reach(d.shed.Limits, q, now), m.reach(d.shed.Hard, q, now)
	softFor, hardFor := d.soft.see(soft, now), d.hard.see(hard, now)
	switch {
	case soft && q.Priority < 0:
		return saturated(p.name, retryAfter(max(softFor, hardFor)))
	case hard:
		return saturated(p.name, retryAfter(hardFor))
	}
	return nil
}

// reach tells whether the members that q may be sent to have reached l. Those
// that are not fit have no room; where none is, l is not what is in q's way.
func (m *members) reach(l Limits, q *Request, now time.Duration) bool {
	if l == (Limits{}) {
		return false
	}
	some := false
	room := func(s *state) bool {
		if !s.standing.fit(now) {
			return false
		}
		some = true
		return !s.reaches(l, now)
	}
	if q.HasSubset {
		for _, addr := range q.Subset {
			if one := m.find(addr); one != nil && room(one.state) {
				return false
			}
		}
		return some
	}
	for i := range m.list {
		if room(m.list[i].state) {
			return false
		}
	}
	return some
}

// reaches tells whether the endpoint is at one of l or beyond.
func (s *state) reaches(l Limits, now time.Duration) bool {
	requests := float64(s.counted())
	in := s.reading.Load()
	trust := in.trust(now)
	if trust > 0 {
		// What it had beyond ours other replicas sent there.
		requests += max(0, in.others) * trust
	}
	return l.InFlight > 0 && requests >= float64(l.InFlight) ||
		l.Queue > 0 && trust > 0 && in.Waiting.OK && in.Waiting.V >= float64(l.Queue) ||
		l.KVUsage > 0 && trust > 0 && in.KVUsage.OK && in.KVUsage.V >= l.KVUsage
}

// spell is how long something has been so, as those saw it who looked.
type spell struct {
	since atomic.Int64 // 1 and the moment from which on all saw it; 0: it is not so
}

// see notes whether it is so at now, and returns for how long it has been.
func (s *spell) see(so bool, now time.Duration) time.Duration {
	if !so {
		s.end()
		return 0
	}
	return s.lasted(now)
}

// end notes that it is not so. It writes only where it was, as that is the rule and
// every decision comes here.
func (s *spell) end() {
	if s.since.Load() != 0 {
		s.since.Store(0)
	}
}

// lasted notes that it is so at now.
func (s *spell) lasted(now time.Duration) time.Duration {
	s.since.CompareAndSwap(0, int64(now)+1)
	since := s.since.Load()
	if since == 0 {
		return 0 // another saw it end meanwhile
	}
	return max(0, now-time.Duration(since-1))
}

// maxRetryAfter is what a client is asked to wait at most.
const maxRetryAfter = time.Minute

// retryAfter is what a client is told to wait, in seconds, where what is in its
// way has lasted so long. Nobody knows when that ends; what has lasted long is
// likely to last as long again. So clients come back ever more rarely, and those
// that were refused one after the other come back farther apart.
func retryAfter(lasted time.Duration) int {
	return int(math.Ceil(max(time.Second, min(lasted, maxRetryAfter)).Seconds()))
}

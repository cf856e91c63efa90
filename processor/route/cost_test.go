package route

import (
	"math"
	"slices"
	"testing"
	"time"
)

func two(t *testing.T) *script {
	t.Helper()
	return newScript(t, onePool(Rules{}, a1, a2))
}

func TestCost_WhatServersSay(t *testing.T) {
	f := func(why, want string, set func(*script)) {
		t.Helper()
		s := two(t)
		set(s)
		s.wants(want, why)
	}
	f("the other runs more", a2, func(s *script) { s.says(a1, 5, 0, 0); s.says(a2, 2, 0, 0) })
	f("the other's requests wait", a2, func(s *script) { s.says(a1, 2, 2, 0); s.says(a2, 5, 0, 0) })
	f("the other's cache is nearly full", a2, func(s *script) { s.says(a1, 2, 0, 0.95); s.says(a2, 10, 0, 0.4) })
	f("a cache half full is no reason against five requests", a1, func(s *script) { s.says(a1, 2, 0, 0.5); s.says(a2, 8, 0, 0.1) })
	f("what is counted here was not there yet when the server was asked", a2, func(s *script) {
		s.says(a1, 3, 0, 0)
		s.says(a2, 4, 0, 0)
		s.begins(a1, 2)
	})
	f("what is counted here is not counted again in what the server says", a1, func(s *script) {
		s.begins(a1, 3)
		s.says(a1, 3, 0, 0)
		s.says(a2, 4, 0, 0)
	})
	s := two(t)
	s.says(a1, 1, 0, 0.1)
	s.says(a2, 1, 0, 0.05)
	s.wantsAll("a sixth of a request is no difference", a1, a2)
	f("an answer that was overtaken changes nothing", a2, func(s *script) {
		s.says(a1, 9, 0, 0)
		s.says(a2, 1, 0, 0)
		s.r.SetSignals(a1, Signals{At: s.now.Add(-time.Millisecond), Running: Some(0.0)})
	})
}

// A server that says nothing is not an idle one.
func TestCost_UnknownIsAverage(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1, a2, a3))
	s.says(a1, 9, 1, 0.9)
	s.says(a2, 3, 0, 0.3)
	s.wants(a2, "it says less than the average, which the silent one is taken for")
	s.begins(a2, 20)
	s.wants(a3, "it is taken for the average, which is below what either of the others has")

	s = newScript(t, onePool(Rules{}, a1, a2))
	s.says(a1, 50, 0, 0)
	s.begins(a1, 1)
	s.wants(a2, "only what is counted here can be compared")
	s.begins(a2, 2)
	s.wants(a1, "only what is counted here can be compared")

	s = newScript(t, onePool(Rules{}, a1, a2))
	s.r.SetSignals(a1, Signals{At: s.now, Running: Some(4.0), Waiting: Some(0.0)})
	s.says(a2, 4, 0, 0.9)
	s.wantsAll("a cache of which nothing is known is as full as the other", a1, a2)
}

// loads are the loads of all members now, in the order of their addresses.
func (s *script) loadsNow() (out []float64) {
	p := s.r.table.Load().pools["default"]
	now := s.r.clock()
	a := p.members.Load().average(&p.rules, now)
	for i := range p.members.Load().list {
		out = append(out, p.members.Load().list[i].load(&p.rules, &a, now))
	}
	return out
}

func TestCost_Loads(t *testing.T) {
	f := func(why string, s *script, want ...float64) {
		t.Helper()
		if got := s.loadsNow(); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", why, got, want)
		}
	}
	s := two(t)
	s.begins(a1, 3)
	s.says(a1, 1, 0, 0) // two of them have not reached it
	s.says(a2, 1, 0, 0)
	f("a server that has less than is counted here", s, 3, 1)

	c := onePool(Rules{}, a1, a2)
	c.Pools[0].Endpoints[1].Weight = 3
	s = newScript(t, c)
	s.says(a1, 2, 1, 0.5)
	s.says(a2, 6, 3, 0.5)
	f("three times as much for three times the weight", s, 2*3+2*1+4, 2*3+2*1+4)

	s = newScript(t, onePool(Rules{}, a1, a2, a3))
	s.says(a1, 50, 50, 1)
	s.r.SetHealthy(a1, false)
	s.says(a2, 4, 0, 0.5)
	f("a server that is down is not in the average of the silent one", s, 50+2*50+16, 4+4, 4+4)
}

// Of many endpoints the average is not made anew for each pick.
func TestCost_AverageAges(t *testing.T) {
	s := newScript(t, onePool(Rules{}, many(scanMax+1)...))
	p := s.r.table.Load().pools["default"]
	mean := func() float64 { return p.members.Load().average(&p.rules, s.r.clock()).load }
	before := mean()
	s.begins(many(1)[0], scanMax+1)
	s.pass(averageAge - 1)
	if got := mean(); got != before {
		t.Errorf("before its time: got %v, want %v", got, before)
	}
	s.pass(1)
	if got := mean(); got != 1 {
		t.Errorf("at its time: got %v, want 1", got)
	}
}

func TestCost_SignalsAge(t *testing.T) {
	s := two(t)
	s.says(a1, 20, 0, 0)
	s.says(a2, 0, 0, 0)
	gap := func() float64 {
		l := s.loadsNow()
		return l[0] - l[1]
	}
	if got := gap(); got != 20 {
		t.Errorf("fresh: got a difference of %v, want 20", got)
	}
	s.pass(freshFor * time.Second)
	if got := gap(); got != 20 {
		t.Errorf("after %d intervals: got a difference of %v, want 20", freshFor, got)
	}
	s.says(a2, 0, 0, 0)
	s.pass(3500 * time.Millisecond) // half way from fresh to stale, for a1
	s.says(a2, 0, 0, 0)
	// The mean is (0.5·20 + 1·0)/1.5, and a1 half way between it and 20.
	if got, want := gap(), 20-(20-20/3.0)/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("half way: got a difference of %v, want %v", got, want)
	}
	s.pass(3500 * time.Millisecond)
	s.says(a2, 0, 0, 0)
	if got := gap(); got != 0 {
		t.Errorf("stale: got a difference of %v, want 0", got)
	}
	if e := s.r.Endpoints(); e[0].Signals.Running.OK || !e[1].Signals.Running.OK {
		t.Errorf("stale signals are shown: %+v", e)
	}
}

func TestCost_Tokens(t *testing.T) {
	s := two(t)
	long := Load{Endpoint: a1, Tokens: 4096}
	s.r.Begin(long)
	s.begins(a2, 3)
	s.wants(a2, "a long prompt is yet to be read by the other")
	s.r.Prefilled(long)
	s.wants(a1, "the prompt is read")
	s.r.End(Load{Endpoint: a1})
	if e := s.r.Endpoints(); e[0].Tokens != 0 || e[0].InFlight != 0 || e[1].InFlight != 3 {
		t.Errorf("got %+v", e)
	}
}

func TestCost_Weights(t *testing.T) {
	c := onePool(Rules{}, a1, a2)
	c.Pools[0].Endpoints[1].Weight = 3
	s := newScript(t, c)
	for range 40 {
		s.begins(s.r.Decide(chat("x")).Endpoint, 1)
	}
	if got := [2]int{s.r.InFlight(a1), s.r.InFlight(a2)}; got != [2]int{10, 30} {
		t.Errorf("in flight by the weights 1 and 3: got %v, want [10 30]", got)
	}
}

func TestCost_Pace(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1, a2, a3))
	s.succeeds(a1, 30, 20*time.Millisecond)
	s.succeeds(a2, 30, 22*time.Millisecond)
	s.succeeds(a3, 30, 80*time.Millisecond)
	s.wantsAll("the third's tokens take four times as long, and a tenth more is no difference", a1, a2)
	s.begins(a1, 9)
	s.begins(a2, 9)
	s.wants(a3, "slow is better than nine more requests")
	s = newScript(t, onePool(Rules{}, a1, a2))
	s.succeeds(a1, 30, 20*time.Millisecond)
	s.succeeds(a2, 30, 100*time.Millisecond)
	s.wants(a1, "the other is slow")
	s.begins(a1, 1)
	s.wants(a1, "slow is worse than one more request")
	s.pass(paceAge / 2)
	s.succeeds(a1, 1, 20*time.Millisecond)
	s.wants(a2, "what was seen half a minute ago counts by half")
	s.r.End(Load{Endpoint: a1})
	s.pass(paceAge)
	s.wantsAll("what was seen a minute ago may be over", a1, a2)
}

// Servers that were there when we came are not new.
func TestSlowStart_NotOfAll(t *testing.T) {
	c := onePool(Rules{SlowStart: time.Hour}, a1)
	now := time.Unix(1_700_000_000, 0)
	c.Now = func() time.Time { now = now.Add(time.Nanosecond); return now }
	if got := mustNew(t, c).Decide(chat("x")).Score; got != 1 {
		t.Errorf("got the cost %v, want 1 for an idle server", got)
	}
}

func TestSlowStart(t *testing.T) {
	s := newScript(t, Config{Pools: []Pool{{Name: "default", Source: "file", Endpoints: at(a1), Rules: Rules{SlowStart: 10 * time.Second}}}})
	s.begins(a1, 40)
	s.pass(time.Minute)
	if err := s.r.SetEndpoints("default", at(a1, a2)); err != nil {
		t.Fatal(err)
	}
	fill := func() int { // a2 until it is no longer the better one
		for s.r.Decide(chat("x")).Endpoint == a2 {
			s.begins(a2, 1)
		}
		return s.r.InFlight(a2)
	}
	if got := fill(); got < 3 || got > 5 {
		t.Errorf("just come: got %d of 40, want a tenth", got)
	}
	s.pass(5 * time.Second)
	if got := fill(); got < 19 || got > 21 {
		t.Errorf("half way: got %d of 40, want half", got)
	}
	s.pass(5 * time.Second)
	if got := fill(); got < 39 || got > 41 {
		t.Errorf("after its slow start: got %d of 40, want as many", got)
	}
}

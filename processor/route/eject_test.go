package route

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var ejecting = Rules{Eject: Eject{Failures: 5, Rate: 0.5, Base: 10 * time.Second, Max: time.Minute, Share: 0.5}}

// ejected are the addresses that are ejected now.
func (s *script) ejected() (out []string) {
	for _, e := range s.r.Endpoints() {
		if e.Ejected {
			out = append(out, e.Address)
		}
	}
	return out
}

func (s *script) isEjected(addr string, want bool, when string) {
	s.t.Helper()
	for _, e := range s.r.Endpoints() {
		if e.Address == addr && e.Ejected != want {
			s.t.Errorf("%s: ejected is %t, want %t", when, e.Ejected, want)
		}
	}
}

func TestEject_InARow(t *testing.T) {
	s := newScript(t, onePool(ejecting, a1, a2))
	s.fails(a1, 4)
	s.succeeds(a1, 1, 0)
	s.fails(a1, 4)
	s.isEjected(a1, false, "four in a row, twice")
	s.fails(a1, 1)
	s.isEjected(a1, true, "five in a row")
	s.begins(a2, 50)
	s.wants(a2, "the other is ejected, whatever this one has to do")
	s.pass(10*time.Second - 1)
	s.isEjected(a1, true, "just before its time")
	s.pass(1)
	s.isEjected(a1, false, "at its time")
	s.wants(a1, "it is back")
}

func TestEject_Rate(t *testing.T) {
	f := func(rounds int, want bool, when string) {
		t.Helper()
		s := newScript(t, onePool(ejecting, a1, a2))
		for range rounds {
			s.succeeds(a1, 1, 0)
			s.fails(a1, 1)
		}
		s.isEjected(a1, want, when)
	}
	u := ejecting
	u.Eject.Base = time.Second
	s := newScript(t, onePool(u, a1, a2))
	for range 10 {
		s.succeeds(a1, 1, 0)
		s.fails(a1, 1)
	}
	s.pass(time.Second)
	s.succeeds(a1, 1, 0)
	s.fails(a1, 1)
	s.isEjected(a1, false, "what it was ejected for is not counted again")

	f(9, false, "half of eighteen")
	f(10, true, "half of twenty")

	s = newScript(t, onePool(ejecting, a1, a2))
	for range 9 {
		s.succeeds(a1, 1, 0)
		s.fails(a1, 1)
	}
	s.pass(rateWindow)
	s.fails(a1, 3)
	s.isEjected(a1, false, "most of 21, but the first 18 are too old to count")
}

// A server that fails at once when it is back is ejected for longer and longer,
// and one that does well for a while makes that good.
func TestEject_Terms(t *testing.T) {
	s := newScript(t, onePool(ejecting, a1, a2))
	term := func(want time.Duration) {
		t.Helper()
		s.pass(want - 1)
		s.isEjected(a1, true, "just before its time")
		s.pass(1)
		s.isEjected(a1, false, "at its time")
	}
	s.fails(a1, 5)
	term(10 * time.Second)
	for _, want := range []time.Duration{20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		s.fails(a1, 1) // on probation one is enough
		term(want)
	}
	s.succeeds(a1, 1, 0)
	s.fails(a1, 4)
	s.isEjected(a1, false, "four in a row after a success")
	s.pass(3 * time.Minute) // three terms well: from the sixth time to the third
	s.fails(a1, 1)
	term(40 * time.Second)
	s.succeeds(a1, 1, 0)
	s.pass(time.Hour)
	s.fails(a1, 5)
	term(10 * time.Second)
}

func TestEject_WhatDoesNotCount(t *testing.T) {
	s := newScript(t, onePool(ejecting, a1, a2))
	for range 9 {
		s.r.Done(Result{Pool: "default", Endpoint: a1}) // the client left before anything came
	}
	s.r.Done(Result{Pool: "default", Endpoint: "10.9.9.9:80", Failure: FailedReset})
	s.r.Done(Result{Pool: "nowhere", Endpoint: a1, Failure: FailedReset})
	s.fails(a1, 4)
	s.r.Done(Result{Pool: "default", Endpoint: a1})
	s.isEjected(a1, false, "four failures, and others'")
	s.fails(a1, 1)
	s.isEjected(a1, true, "five in a row")
	s.fails(a1, 50) // they began before
	s.pass(10 * time.Second)
	s.isEjected(a1, false, "failures while it was ejected")

	s = newScript(t, onePool(ejecting, many(5)...))
	s.fails(many(1)[0], 50)
	s.pass(10 * time.Second)
	s.isEjected(many(1)[0], false, "failures while it was ejected, where more could be")

	s = newScript(t, onePool(Rules{}, a1, a2))
	s.fails(a1, 1000)
	s.isEjected(a1, false, "no rule ejects it")
}

// Envoy passes a pick over when it can't be reached. The one that it took instead
// has served.
func TestEject_PassedOver(t *testing.T) {
	s := newScript(t, onePool(ejecting, a1, a2))
	for range 5 {
		s.r.Done(Result{Pool: "default", Endpoint: a1, Served: a2, Headers: time.Millisecond})
	}
	s.isEjected(a1, true, "passed over five times")
	s.isEjected(a2, false, "served five times")

	s = newScript(t, onePool(ejecting, a1, a2))
	for range 50 { // an address that only Envoy knows, such as a service's
		s.r.Done(Result{Pool: "default", Endpoint: a1, Served: "10.96.0.1:80", Headers: time.Millisecond})
	}
	s.isEjected(a1, false, "served under another address")
	for range 5 {
		s.r.Done(Result{Pool: "default", Endpoint: a1, Served: "10.9.9.9:80", Attempts: 2, Headers: time.Millisecond})
	}
	s.isEjected(a1, true, "tried in vain, and served by another pool's")
}

func TestEject_IsTold(t *testing.T) {
	var got []Ejection
	c := onePool(ejecting, a1, a2)
	var s *script
	c.Ejected = func(e Ejection) {
		got = append(got, e)
		if !s.r.mu.TryLock() {
			t.Error("who is told holds up all others")
			return
		}
		s.r.mu.Unlock()
	}
	s = newScript(t, c)
	s.fails(a1, 10)
	s.fails(a2, 10) // may not be ejected
	s.pass(10 * time.Second)
	s.r.Done(Result{Pool: "default", Endpoint: a1, Served: a2, Headers: time.Millisecond})
	want := []Ejection{
		{Pool: "default", Endpoint: a1, Failure: FailedConnect, For: 10 * time.Second},
		{Pool: "default", Endpoint: a1, Failure: FailedPassedOver, For: 20 * time.Second},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	words := make(map[string]bool)
	for f := NoFailure; f <= FailedPassedOver; f++ {
		words[f.String()] = true
	}
	if len(words) != 6 || words[Failure(200).String()] {
		t.Errorf("the failures are called %v, want a word of its own for each", words)
	}
}

func TestEject_Share(t *testing.T) {
	s := newScript(t, onePool(ejecting, many(5)...))
	for _, a := range many(5) {
		s.fails(a, 5)
	}
	if got := s.ejected(); len(got) != 2 {
		t.Errorf("of five all fail: got %q ejected, want two", got)
	}
	s = newScript(t, onePool(ejecting, a1))
	s.fails(a1, 50)
	s.isEjected(a1, false, "it is the only one")
}

func TestEject_SlowlyBack(t *testing.T) {
	u := ejecting
	u.SlowStart = 10 * time.Second
	s := newScript(t, onePool(u, a1, a2))
	s.begins(a2, 40)
	s.fails(a1, 5)
	s.pass(10 * time.Second)
	s.begins(a1, 5)
	s.wants(a2, "five are more than the other may have at first")
	s.pass(5 * time.Second)
	s.wants(a1, "half way it may have twenty")
}

func TestHealth(t *testing.T) {
	s := newScript(t, onePool(Rules{SlowStart: 10 * time.Second}, a1, a2))
	s.begins(a2, 40)
	s.r.SetHealthy(a1, false)
	s.r.SetHealthy("10.9.9.9:80", false)
	s.wants(a2, "the other is down")
	if e := s.r.Endpoints(); e[0].Healthy || !e[1].Healthy {
		t.Errorf("got %+v", e)
	}
	s.pass(time.Minute)
	s.r.SetHealthy(a1, true)
	s.r.SetHealthy(a1, true)
	s.wants(a1, "it is back")
	s.begins(a1, 5)
	s.wants(a2, "it gets little at first")
}

func TestPanic(t *testing.T) {
	s := newScript(t, onePool(Rules{PanicThreshold: 0.5}, many(4)...))
	down := func(n int) {
		for i, a := range many(4) {
			s.r.SetHealthy(a, i >= n)
		}
	}
	down(2)
	s.wantsAll("half is enough", many(4)[2:]...)
	down(3)
	s.wantsAll("a quarter is not: all have to do", many(4)...)
	s = newScript(t, onePool(Rules{}, many(4)...))
	down(3)
	s.wantsAll("without a threshold one is enough", many(4)[3:]...)
	down(4)
	s.wantsAll("but none is not", many(4)...)
	q := chat("x")
	q.Subset, q.HasSubset = many(4)[:2], true
	down(2)
	if d := s.r.Decide(q); d.Reject != nil {
		t.Errorf("both of a subset are down: rejected for %s, want one of them", d.Reason)
	}
}

// Whatever happens, the rules of ejecting hold.
func TestEject_Invariants(t *testing.T) {
	addrs := many(6)
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		s := newScript(t, onePool(ejecting, addrs...))
		inRow := map[string]int{}
		was := map[string]bool{}
		for range 3000 {
			a := addrs[rnd.IntN(len(addrs))]
			st := s.r.states[a]
			probation, all := st.standing.probation, st.standing.all
			event := rnd.IntN(4)
			switch event {
			case 0:
				s.pass(time.Duration(rnd.IntN(4000)) * time.Millisecond)
			case 1:
				s.succeeds(a, 1, 0)
				inRow[a] = 0
			default:
				s.fails(a, 1)
				inRow[a]++
			}
			now, n := s.r.clock(), 0
			for _, b := range addrs {
				g := &s.r.states[b].standing
				is := g.ejected(now)
				until := time.Duration(g.until.Load())
				if is {
					n++
				}
				switch {
				case is && until-now > ejecting.Eject.Max:
					t.Fatalf("ejected for %v, want %v at most", until-now, ejecting.Eject.Max)
				case is && !was[b] && (b != a || event < 2):
					t.Fatalf("ejected without a failure")
				case is && !was[b] && inRow[b] < 5 && !probation && all+1 < rateLeast:
					t.Fatalf("ejected after %d failures in a row, of %d", inRow[b], all+1)
				case g.probation && g.inRow != 0:
					t.Fatalf("on probation with %d failures in a row", g.inRow)
				case g.failed > g.all || g.times < 0 || g.times > maxTimes:
					t.Fatalf("%d of %d failed, %d times", g.failed, g.all, g.times)
				case !is && until != 0 && g.since.Load() != int64(until):
					t.Fatalf("back since %v, was ejected until %v", g.since.Load(), until)
				}
				if is && !was[b] {
					inRow[b] = 0
				}
				was[b] = is
			}
			if n > 3 {
				t.Fatalf("%d of 6 are ejected, want half at most", n)
			}
		}
	}
}

package route

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// shedding is a router whose pool default, of a1 and a2, sheds by s, and its
// clock.
func shedding(t *testing.T, s Shed) (*Router, *time.Time) {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	r := mustNew(t, Config{
		Pools: []Pool{{Name: "default", Endpoints: at(a1, a2), Shed: s}},
		Now:   func() time.Time { return now },
	})
	return r, &now
}

func priority(p int) Request {
	q := chat("x")
	q.Priority = p
	return q
}

// refused tells who is refused of those with a priority below, at and above 0.
func refused(t *testing.T, r *Router, q Request) [3]bool {
	t.Helper()
	var out [3]bool
	for i, p := range []int{-1, 0, 1} {
		q.Priority = p
		d := r.Decide(q)
		out[i] = d.Reject != nil
		if out[i] && (d.Reason != ReasonSaturated || d.Reject.Reason != d.Reason || d.Reject.Status != 429 || d.Pool != "default" || d.Reject.RetryAfter < 1) {
			t.Errorf("priority %d: got %+v with %+v", p, d, d.Reject)
		}
	}
	return out
}

// toWait is how many seconds q is told to wait, 0 where it is not refused.
func toWait(r *Router, q Request) int {
	if rej := r.Decide(q).Reject; rej != nil {
		return rej.RetryAfter
	}
	return 0
}

func busy(r *Router, endpoint string, n int) {
	for range n {
		r.Begin(Load{Endpoint: endpoint})
	}
}

func TestShedsWhereEachEndpointIsAtALimit(t *testing.T) {
	nobody, low, all := [3]bool{}, [3]bool{true, false, false}, [3]bool{true, true, true}
	soft := func(l Limits) Shed { return Shed{Limits: l} }
	waiting := func(n float64) Signals { return Signals{Waiting: Some(n)} }
	f := func(name string, s Shed, set func(*Router), want [3]bool) {
		t.Helper()
		r, _ := shedding(t, s)
		set(r)
		if got := refused(t, r, chat("x")); got != want {
			t.Errorf("%s: refused are the priorities -1, 0, 1: %v, want %v", name, got, want)
		}
	}
	f("no limits", Shed{}, func(r *Router) { busy(r, a1, 1000); busy(r, a2, 1000) }, nobody)
	f("idle", soft(Limits{InFlight: 1}), func(*Router) {}, nobody)
	f("one has room", soft(Limits{InFlight: 2}), func(r *Router) { busy(r, a1, 9); busy(r, a2, 1) }, nobody)
	f("none has room", soft(Limits{InFlight: 2}), func(r *Router) { busy(r, a1, 2); busy(r, a2, 2) }, low)
	f("by different limits", soft(Limits{InFlight: 2, Queue: 3}), func(r *Router) { busy(r, a1, 2); r.SetSignals(a2, waiting(3)) }, low)
	f("expected ones count", soft(Limits{InFlight: 1}), func(r *Router) {
		busy(r, a1, 1)
		r.states[a2].expected.Add(1)
	}, low)
	f("a short queue", soft(Limits{Queue: 3}), func(r *Router) { r.SetSignals(a1, waiting(3)); r.SetSignals(a2, waiting(2)) }, nobody)
	f("long queues", soft(Limits{Queue: 3}), func(r *Router) { r.SetSignals(a1, waiting(3)); r.SetSignals(a2, waiting(4)) }, low)
	f("a queue that nothing is known of", soft(Limits{Queue: 3}), func(r *Router) {
		r.SetSignals(a1, waiting(9))
		r.SetSignals(a2, Signals{Running: Some(9.0)})
	}, nobody)
	f("full caches", soft(Limits{KVUsage: 0.9}), func(r *Router) {
		r.SetSignals(a1, Signals{KVUsage: Some(0.9)})
		r.SetSignals(a2, Signals{KVUsage: Some(1.0)})
	}, low)
	f("a cache with room", soft(Limits{KVUsage: 0.9}), func(r *Router) {
		r.SetSignals(a1, Signals{KVUsage: Some(0.9)})
		r.SetSignals(a2, Signals{KVUsage: Some(0.89)})
	}, nobody)
	f("other replicas' requests", soft(Limits{InFlight: 4}), func(r *Router) {
		busy(r, a1, 4)
		r.SetSignals(a2, Signals{Running: Some(3.0), Waiting: Some(0.0)})
		busy(r, a2, 1)
	}, low)
	f("what can't be picked has no room", soft(Limits{InFlight: 2}), func(r *Router) { busy(r, a1, 2); r.SetHealthy(a2, false) }, low)
	f("what is ejected has no room", soft(Limits{InFlight: 2}), func(r *Router) {
		busy(r, a1, 2)
		r.states[a2].standing.until.Store(int64(time.Hour))
	}, low)
	f("nothing can be picked", soft(Limits{InFlight: 1}), func(r *Router) {
		busy(r, a1, 2)
		r.SetHealthy(a1, false)
		r.SetHealthy(a2, false)
	}, nobody)

	both := Shed{Limits: Limits{InFlight: 2}, Hard: Limits{InFlight: 4}}
	f("below the hard limit", both, func(r *Router) { busy(r, a1, 3); busy(r, a2, 9) }, low)
	f("at the hard limit", both, func(r *Router) { busy(r, a1, 4); busy(r, a2, 4) }, all)
	f("a hard limit alone", Shed{Hard: Limits{Queue: 1}}, func(r *Router) { r.SetSignals(a1, waiting(1)); r.SetSignals(a2, waiting(1)) }, all)
}

// What a server said long ago is not known any more.
func TestShedsByWhatIsKnownNow(t *testing.T) {
	r, now := shedding(t, Shed{Limits: Limits{Queue: 1}})
	for _, e := range []string{a1, a2} {
		r.SetSignals(e, Signals{Waiting: Some(5.0), Interval: time.Second})
	}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {staleAfter*time.Second - 1, true}, {1, false}} {
		*now = now.Add(c.after)
		if got := refused(t, r, chat("x"))[0]; got != c.want {
			t.Errorf("%s later: refused is %v, want %v", c.after, got, c.want)
		}
	}
}

// Only endpoints that the gateway allows have room for its request.
func TestShedsWithinTheSubset(t *testing.T) {
	r, _ := shedding(t, Shed{Limits: Limits{InFlight: 1}})
	busy(r, a1, 1)
	for _, c := range []struct {
		subset []string
		want   bool
	}{{[]string{a1}, true}, {[]string{a1, a1, "10.9.9.9:80"}, true}, {[]string{a1, a2}, false}, {[]string{a2}, false}} {
		q := chat("x")
		q.Subset, q.HasSubset = c.subset, true
		if got := refused(t, r, q)[0]; got != c.want {
			t.Errorf("in the subset %q: refused is %v, want %v", c.subset, got, c.want)
		}
	}
	q := priority(-1)
	q.HasSubset = true
	if d := r.Decide(q); d.Reason != ReasonNotInSubset {
		t.Errorf("in an empty subset: got %s, want %s", d.Reason, ReasonNotInSubset)
	}
}

// A client is asked to wait as long as the pool has been full so far, from 1 s to
// a minute.
func TestRetryAfter(t *testing.T) {
	r, now := shedding(t, Shed{Limits: Limits{InFlight: 1}, Hard: Limits{InFlight: 2}})
	busy(r, a1, 1)
	busy(r, a2, 1)
	var got []int
	ask := func(after time.Duration, p int) {
		*now = now.Add(after)
		got = append(got, toWait(r, priority(p)))
	}
	ask(0, -1)
	ask(time.Millisecond, -1)
	ask(2*time.Second, -1) // 2.001 s
	ask(37*time.Second, -1)
	ask(time.Hour, -1)
	ask(0, 0) // below the hard limit
	busy(r, a1, 1)
	busy(r, a2, 1)
	ask(0, 0) // at the hard limit, from now on
	ask(5*time.Second, 0)
	ask(0, -1)                // at the other for an hour
	r.End(Load{Endpoint: a1}) // below the hard limit
	ask(time.Second, 0)       // which this sees
	busy(r, a1, 1)
	ask(time.Second, 0)
	r.End(Load{Endpoint: a1})
	r.End(Load{Endpoint: a1})
	ask(time.Second, -1)
	busy(r, a1, 1)
	ask(time.Second, -1)
	if want := []int{1, 1, 3, 40, 60, 0, 1, 5, 60, 0, 1, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("got retry-after %v, want %v", got, want)
	}
}

// The same holds where there is no endpoint at all.
func TestRetryAfterOfAnEmptyPool(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := mustNew(t, Config{Pools: []Pool{{Name: "default", Source: "dns"}}, Now: func() time.Time { return now }})
	var got []int
	ask := func(after time.Duration) {
		now = now.Add(after)
		got = append(got, toWait(r, chat("x")))
	}
	ask(0)
	ask(10 * time.Second)
	if err := r.SetEndpoints("default", at(a1)); err != nil {
		t.Fatal(err)
	}
	ask(time.Second)
	if err := r.SetEndpoints("default", nil); err != nil {
		t.Fatal(err)
	}
	ask(time.Second)
	ask(2 * time.Second)
	if want := []int{1, 10, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got retry-after %v, want %v", got, want)
	}
}

// A change of the configuration does not begin it anew, but for what changed.
func TestRetryAfterOverAChange(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := Config{
		Pools: []Pool{{Name: "default", Endpoints: at(a1), Shed: Shed{Hard: Limits{InFlight: 1}}}},
		Now:   func() time.Time { return now },
	}
	r := mustNew(t, c)
	busy(r, a1, 1)
	r.Decide(chat("x"))
	now = now.Add(20 * time.Second)
	apply := func(want int) {
		t.Helper()
		if err := r.Apply(c); err != nil {
			t.Fatal(err)
		}
		if got := toWait(r, chat("x")); got != want {
			t.Errorf("got retry-after %d, want %d", got, want)
		}
	}
	apply(20)
	c.Pools[0].Shed.Hard.InFlight = 2
	apply(0)
	c.Pools[0].Shed.Hard.InFlight = 1
	apply(1)
}

func TestShedsConcurrentSafe(t *testing.T) {
	c := Config{Pools: []Pool{{Name: "default", Endpoints: at(a1, a2), Shed: Shed{Limits: Limits{InFlight: 1}, Hard: Limits{InFlight: 2}}}},
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	r := mustNew(t, c)
	busy(r, a1, 1)
	busy(r, a2, 1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				low := i%2 == 0
				d := r.Decide(priority(i%2 - 1))
				if low && d.Reject == nil {
					t.Error("a request of a priority below 0 got in")
				}
				if d.Reject == nil {
					r.Begin(Load{Endpoint: d.Endpoint})
					r.End(Load{Endpoint: d.Endpoint})
				} else if s := d.Reject.RetryAfter; s != 1 {
					t.Errorf("retry-after %d, want 1: the clock stands", s)
				}
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if err := r.Apply(c); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}

// What other replicas count by now keeps nobody away, with no server asked and
// nothing picked meanwhile.
func TestShedsNotByWhatIsExpectedNoMore(t *testing.T) {
	r, now := shedding(t, Shed{Hard: Limits{InFlight: 1}})
	for i, e := range []string{a1, a2} {
		r.Expect([8]byte{byte(i + 1)}, Load{Endpoint: e})
	}
	if got, want := refused(t, r, chat("x")), [3]bool{true, true, true}; got != want {
		t.Errorf("while they are expected: refused %v, want %v", got, want)
	}
	*now = now.Add(defaultExpectation)
	if got, want := refused(t, r, chat("x")), [3]bool{}; got != want {
		t.Errorf("when they are no more: refused %v, want %v", got, want)
	}
}

package route

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// script drives a router by a clock and random numbers of its own.
type script struct {
	t   testing.TB
	r   *Router
	now time.Time
}

func newScript(t testing.TB, c Config) *script {
	t.Helper()
	s := &script{t: t, now: time.Unix(1_700_000_000, 0)}
	rnd := rand.New(rand.NewPCG(1, 2))
	c.Now, c.Random = func() time.Time { return s.now }, rnd.Uint64
	s.r = mustNew(t, c)
	return s
}

// onePool is one pool with the endpoints and the rules.
func onePool(u Rules, addresses ...string) Config {
	return Config{Pools: []Pool{{Name: "default", Endpoints: at(addresses...), Rules: u}}}
}

func (s *script) pass(d time.Duration) { s.now = s.now.Add(d) }

// says has the server at addr say that it runs and lets wait so many requests, and
// how full its cache is.
func (s *script) says(addr string, running, waiting, kv float64) {
	s.r.SetSignals(addr, Signals{At: s.now, Interval: time.Second, Running: Some(running), Waiting: Some(waiting), KVUsage: Some(kv)})
}

// begins counts n requests at addr.
func (s *script) begins(addr string, n int) {
	for range n {
		s.r.Begin(Load{Endpoint: addr})
	}
}

// picks decides n times for x, each without being counted, and returns how often
// each endpoint was picked.
func (s *script) picks(n int) map[string]int {
	s.t.Helper()
	got := map[string]int{}
	for range n {
		d := s.r.Decide(chat("x"))
		if d.Reject != nil {
			s.t.Fatalf("rejected for %q", d.Reason)
		}
		got[d.Endpoint]++
	}
	return got
}

// wants fails unless all of ten picks are of addr.
func (s *script) wants(addr, why string) {
	s.t.Helper()
	if got := s.picks(10); got[addr] != 10 {
		s.t.Errorf("got %v, want %s, %s", got, addr, why)
	}
}

// wantsAll fails unless ten picks for each of addrs are spread evenly over them.
func (s *script) wantsAll(why string, addrs ...string) {
	s.t.Helper()
	got := s.picks(10 * len(addrs))
	for _, a := range addrs {
		if got[a] != 10 {
			s.t.Errorf("got %v, want all of %q alike, %s", got, addrs, why)
			return
		}
	}
}

// fails has n exchanges at addr fail.
func (s *script) fails(addr string, n int) {
	for range n {
		s.r.Done(Result{Pool: "default", Endpoint: addr, Failure: FailedConnect})
	}
}

// succeeds has n exchanges at addr go well, each token taking tpot.
func (s *script) succeeds(addr string, n int, tpot time.Duration) {
	for range n {
		s.r.Done(Result{Pool: "default", Endpoint: addr, Headers: 50 * time.Millisecond, TPOT: tpot})
	}
}

// many are n addresses.
func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "10." + strconv.Itoa(i/62500) + "." + strconv.Itoa(i/250%250) + "." + strconv.Itoa(1+i%250) + ":8000"
	}
	return out
}

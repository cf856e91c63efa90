package route

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

func span(n int) (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// expects fails unless n requests are expected at a1.
func (s *script) expects(n int) {
	s.t.Helper()
	if got := s.r.Endpoints()[0].Expected; got != n {
		s.t.Errorf("got %d expected requests, want %d", got, n)
	}
}

func TestExpect(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1, a2))
	s.r.Expect(span(1), Load{Endpoint: a1})
	s.r.Expect(span(1), Load{Endpoint: a1}) // once a span
	s.r.Expect(span(2), Load{Endpoint: a1, Tokens: 500})
	s.r.Expect(span(3), Load{Endpoint: "10.9.9.9:80"}) // no endpoint of ours
	s.expects(2)
	if got := s.r.Endpoints()[0].Tokens; got != 500 {
		t.Errorf("got %d tokens to read, want 500", got)
	}
	s.wants(a2, "two are expected at the other")
	s.r.Arrived(span(1))
	s.r.Arrived(span(1))
	s.r.Arrived(span(9))
	s.expects(1)
	s.pass(defaultExpectation - 1)
	s.expects(1)
	s.pass(1)
	s.expects(0)
	s.r.Arrived(span(2)) // too late: nothing
	s.expects(0)
	if got := s.r.Endpoints()[0].Tokens; got != 0 {
		t.Errorf("got %d tokens to read, want none", got)
	}
}

// A request is expected for as long as response headers take there.
func TestExpect_SmoothedTime(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1))
	after := func(headers, want time.Duration) {
		t.Helper()
		for range 200 {
			s.r.Done(Result{Endpoint: a1, Headers: headers})
		}
		s.r.Expect(span(1), Load{Endpoint: a1})
		s.pass(want - time.Millisecond)
		s.expects(1)
		s.pass(time.Millisecond)
		s.expects(0)
	}
	after(300*time.Millisecond, 300*time.Millisecond)
	after(time.Millisecond, minExpectation)
	after(time.Hour, maxExpectation)
}

// The earliest deadline comes first, in whatever order they were set.
func TestExpect_Deadlines(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1, a2))
	for range 200 {
		s.r.Done(Result{Endpoint: a2, Headers: 10 * time.Second})
	}
	s.r.Expect(span(1), Load{Endpoint: a2})
	s.r.Expect(span(2), Load{Endpoint: a1})
	s.pass(time.Second)
	if e := s.r.Endpoints(); e[0].Expected != 0 || e[1].Expected != 1 {
		t.Errorf("after a second: got %d and %d, want 0 and 1", e[0].Expected, e[1].Expected)
	}
	s.pass(9 * time.Second)
	if e := s.r.Endpoints(); e[1].Expected != 0 {
		t.Errorf("after ten seconds: got %d, want 0", e[1].Expected)
	}
}

// A request that another replica counts is in what the server says, once it is
// not expected any more: there is no moment at which it is lost or counted twice.
func TestExpect_BetweenScrapes(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1, a2))
	load := func() float64 {
		p := s.r.table.Load().pools["default"]
		now := s.r.clock()
		s.r.expire(now)
		a := p.members.Load().average(&p.rules, now)
		return p.members.Load().list[0].load(&p.rules, &a, now)
	}
	f := func(when string, want float64) {
		t.Helper()
		if got := load(); got != want {
			t.Errorf("%s: got the load %v, want %v", when, got, want)
		}
	}
	s.says(a1, 4, 0, 0)
	s.says(a2, 0, 0, 0)
	s.r.Expect(span(1), Load{Endpoint: a1})
	f("decided", 5)
	s.pass(defaultExpectation / 2)
	s.says(a1, 5, 0, 0) // it is there
	f("asked again", 5)
	s.pass(defaultExpectation / 2)
	f("no longer expected", 5)
	s.says(a1, 5, 0, 0)
	f("asked once more", 5)

	s.r.Expect(span(2), Load{Endpoint: a1})
	f("another", 6)
	s.r.Arrived(span(2))
	s.begins(a1, 1)
	f("that arrived here", 6)
	s.says(a1, 6, 0, 0)
	f("and is in what the server says", 6)

	s.r.Expect(span(3), Load{Endpoint: a1})
	s.pass(defaultExpectation)
	f("a third that the server was not asked since", 6)
}

func TestExpect_Bounded(t *testing.T) {
	s := newScript(t, onePool(Rules{}, a1))
	for i := range maxExpected + 10 {
		s.r.Expect(span(i), Load{Endpoint: a1})
	}
	s.expects(maxExpected)
	for i := range maxExpected + 10 {
		s.r.Arrived(span(i))
	}
	s.expects(0)
	for i := range maxExpected + 10 { // those that arrived take room until their time
		s.r.Expect(span(i), Load{Endpoint: a1})
		s.r.Arrived(span(i))
	}
	if n := len(s.r.expected.queue); n > maxExpected {
		t.Errorf("got %d in the queue, want %d at most", n, maxExpected)
	}
	s.pass(defaultExpectation)
	s.expects(0)
	if n := len(s.r.expected.queue) + len(s.r.expected.bySpan); n != 0 {
		t.Errorf("got %d left, want none", n)
	}
}

// Against a plain count of what was expected and did not arrive in time.
func TestExpect_Model(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	s := newScript(t, onePool(Rules{}, a1))
	until := map[int]time.Time{}
	for range 20_000 {
		switch n := rnd.IntN(200); rnd.IntN(3) {
		case 0:
			s.r.Expect(span(n), Load{Endpoint: a1})
			if u, there := until[n]; !there || !s.now.Before(u) {
				until[n] = s.now.Add(defaultExpectation)
			}
		case 1:
			s.r.Arrived(span(n))
			delete(until, n)
		case 2:
			s.pass(time.Duration(rnd.IntN(20)) * time.Millisecond)
		}
		want := 0
		for _, u := range until {
			if s.now.Before(u) {
				want++
			}
		}
		if got := s.r.Endpoints()[0].Expected; got != want {
			t.Fatalf("got %d expected, want %d", got, want)
		}
	}
}

package route

import (
	"math"
	"slices"
	"testing"
	"time"
)

// asks is a request for x whose prompt has so many blocks, of the given kind.
func asks(kind, blocks int) Request {
	q := chat("x")
	for i := range blocks {
		q.Prefix = append(q.Prefix, mix(uint64(kind)<<8+uint64(i)+1))
	}
	q.PromptBytes = blocks*blockBytes + 100
	return q
}

var byPrefix = Rules{Policy: Prefix}

func TestPrefix_ReplicasAgree(t *testing.T) {
	addrs := many(20)
	one := newScript(t, onePool(byPrefix, addrs...))
	slices.Reverse(addrs)
	other := newScript(t, onePool(byPrefix, addrs...))
	got := map[string]int{}
	for kind := range 1000 {
		a, b := one.r.Decide(asks(kind, 3)), other.r.Decide(asks(kind, 3))
		if !slices.Equal(a.Candidates, b.Candidates) {
			t.Fatalf("prompt %d: one replica says %q, the other %q", kind, a.Candidates, b.Candidates)
		}
		got[a.Endpoint]++
	}
	for a, n := range got {
		if n < 20 || n > 85 { // 50 are expected, and 5 standard deviations allowed
			t.Errorf("%s has %d of 1000 prompts, want about 50", a, n)
		}
	}
	if len(got) != len(addrs) {
		t.Errorf("%d of %d endpoints have prompts", len(got), len(addrs))
	}
}

func TestPrefix_MovesNoMoreThanNeeded(t *testing.T) {
	addrs := many(10)
	all := newScript(t, onePool(byPrefix, addrs...))
	fewer := newScript(t, onePool(byPrefix, addrs[1:]...))
	for kind := range 500 {
		a, b := all.r.Decide(asks(kind, 3)), fewer.r.Decide(asks(kind, 3))
		if want := a.Candidates[0]; want != addrs[0] && b.Endpoint != want {
			t.Errorf("prompt %d: moved from %s to %s, which did not go", kind, want, b.Endpoint)
		} else if want == addrs[0] && b.Endpoint != a.Candidates[1] {
			t.Errorf("prompt %d: moved to %s, want the next candidate %s", kind, b.Endpoint, a.Candidates[1])
		}
	}
}

// Of many endpoints the same ones are picked, and of those that are down none.
func TestPrefix_Many(t *testing.T) {
	addrs := many(scanMax + 50)
	one := newScript(t, onePool(byPrefix, addrs...))
	slices.Reverse(addrs)
	other := newScript(t, onePool(byPrefix, addrs...))
	for kind := range 50 {
		a, b := one.r.Decide(asks(kind, 3)), other.r.Decide(asks(kind, 3))
		if !slices.Equal(a.Candidates, b.Candidates) {
			t.Fatalf("prompt %d: one replica says %q, the other %q", kind, a.Candidates, b.Candidates)
		}
		one.r.SetHealthy(a.Endpoint, false)
		if got := one.r.Decide(asks(kind, 3)).Endpoint; got != a.Candidates[1] {
			t.Errorf("prompt %d: got %s, want the next candidate %s", kind, got, a.Candidates[1])
		}
		one.r.SetHealthy(a.Endpoint, true)
	}
	for _, a := range addrs[1:] {
		one.r.SetHealthy(a, false)
	}
	one.pass(averageAge)
	if got := one.r.Decide(asks(1, 3)).Endpoint; got != addrs[0] {
		t.Errorf("got %s, want the only one that is not down", got)
	}
	got := map[string]bool{}
	for range 100 {
		got[other.r.Decide(chat("x")).Endpoint] = true
	}
	if len(got) < 50 {
		t.Errorf("prompts without a whole block went to %d endpoints, want them spread", len(got))
	}
}

// A conversation that grows by a block at a time changes its key only where its
// length doubled, whatever follows within.
func TestPrefix_Key(t *testing.T) {
	var keys []int
	last := uint64(0)
	for blocks := 1; blocks <= 20; blocks++ {
		q := asks(1, blocks)
		key, ok := affinity(&q, "m")
		if !ok {
			t.Fatalf("%d blocks: no key", blocks)
		}
		if key != last {
			keys = append(keys, blocks)
		}
		last = key
	}
	if want := []int{1, 2, 4, 8, 16}; !slices.Equal(keys, want) {
		t.Errorf("the key changed at %d blocks, want %d", keys, want)
	}
	q := asks(1, 3)
	of, _ := affinity(&q, "m")
	if other, _ := affinity(&q, "n"); other == of {
		t.Error("two models share the key of a prompt")
	}
	none, named := asks(1, 0), asks(1, 3)
	if _, ok := affinity(&none, "m"); ok {
		t.Error("a prompt without a whole block has a key")
	}
	named.Session = "s"
	a, _ := affinity(&named, "m")
	named.Prefix = asks(2, 3).Prefix
	if b, _ := affinity(&named, "m"); a != b {
		t.Error("a named conversation is not kept by its name")
	}
	if b, _ := affinity(&named, "n"); a == b {
		t.Error("two models share a key")
	}
}

func TestPrefix_Weights(t *testing.T) {
	c := onePool(byPrefix, a1, a2, a3)
	c.Pools[0].Endpoints[0].Weight = 2
	s := newScript(t, c)
	got := map[string]int{}
	for kind := range 4000 {
		got[s.r.Decide(asks(kind, 3)).Endpoint]++
	}
	for a, want := range map[string]int{a1: 2000, a2: 1000, a3: 1000} {
		if n := got[a]; n < want-170 || n > want+170 { // 5 standard deviations and more
			t.Errorf("%s has %d of 4000 prompts, want about %d", a, n, want)
		}
	}
}

// fills begins requests at addr for as long as they go there, and returns how many.
func (s *script) fills(addr string) (n int) {
	for s.r.Decide(asks(1, 3)).Endpoint == addr {
		s.begins(addr, 1)
		n++
	}
	return n
}

// The prompt that all have in common does not overrun its endpoint.
func TestPrefix_LoadBound(t *testing.T) {
	s := newScript(t, onePool(byPrefix, many(4)...))
	first := s.r.Decide(asks(1, 3)).Endpoint
	n := s.fills(first)
	// At n requests the mean is n/4: 1.25·n/4 + 2 is below n from 3 on.
	if n != 3 {
		t.Errorf("got %d at the one endpoint while the others are idle, want 3", n)
	}
	for range 97 {
		s.begins(s.r.Decide(asks(1, 3)).Endpoint, 1)
	}
	for _, e := range s.r.Endpoints() {
		if bound := DefaultLoadBound*25.0 + boundSlack + 1; float64(e.InFlight) > bound {
			t.Errorf("%s has %d of 100, want %v at most", e.Address, e.InFlight, bound)
		}
	}
	if got := s.r.InFlight(first); got < 30 {
		t.Errorf("its endpoint has %d of 100, want all that the bound allows", got)
	}
	for i := range 40 { // full elsewhere as well
		s.begins(many(4)[i%4], 10)
	}
	if got := s.r.Decide(asks(1, 3)).Endpoint; got != first {
		t.Errorf("got %s, want %s, which has no more than the others", got, first)
	}

	q := asks(1, 3)
	q.Subset, q.HasSubset = many(2), true
	s = newScript(t, onePool(byPrefix, many(4)...))
	preferred := s.r.Decide(q).Candidates
	s.begins(preferred[0], 21)
	s.begins(preferred[1], 20)
	if got := s.r.Decide(q).Endpoint; got != preferred[1] {
		t.Errorf("of two that both have too much to do got %s, want %s, which has less", got, preferred[1])
	}

	u := byPrefix
	u.LoadBound = 4
	s = newScript(t, onePool(u, many(4)...))
	for range 100 {
		s.begins(s.r.Decide(asks(1, 3)).Endpoint, 1)
	}
	if got := s.r.InFlight(first); got != 100 {
		t.Errorf("with a bound of 4 of 4 endpoints: got %d of 100, want all", got)
	}
}

// A slow server keeps what it has while it is idle, and gives it up sooner.
func TestPrefix_SlowServer(t *testing.T) {
	s := newScript(t, onePool(byPrefix, many(4)...))
	first := s.r.Decide(asks(1, 3)).Endpoint
	for _, a := range many(4) {
		tpot := 20 * time.Millisecond
		if a == first {
			tpot = 80 * time.Millisecond
		}
		s.succeeds(a, 30, tpot)
	}
	n := s.fills(first)
	// The mean is 40.6 tokens a second, its pace 80 ms · 40.6/s / 1.25 = 2.6: with one
	// there, twice that is above 1 + 2 + 1.25/4.
	if n != 1 {
		t.Errorf("got %d at the slow server, want 1", n)
	}
}

// A prompt too short to have a block goes where there is least to do.
func TestPrefix_WithoutOne(t *testing.T) {
	s := newScript(t, onePool(byPrefix, a1, a2))
	s.begins(a1, 1)
	s.wants(a2, "the other has something to do")
}

func TestWantsPrefix(t *testing.T) {
	if newScript(t, onePool(Rules{}, a1)).r.WantsPrefix() || !newScript(t, onePool(byPrefix, a1)).r.WantsPrefix() {
		t.Error("the prompt's prefix is wanted where a pool picks by it, and only there")
	}
}

// loads has the server at addr run and queue adapters, with room for so many.
func (s *script) loads(addr string, room int, running, waiting []string) {
	s.r.SetSignals(addr, Signals{At: s.now, MaxLoRA: Some(room), RunningLoRA: running, WaitingLoRA: waiting})
}

func TestLoRA(t *testing.T) {
	addrs := many(5)
	runs, fits, silent, waits, full := addrs[0], addrs[1], addrs[2], addrs[3], addrs[4]
	s := newScript(t, onePool(Rules{Policy: LoRA}, addrs...))
	s.loads(runs, 2, []string{"y", "x"}, nil)
	s.loads(fits, 2, []string{"y"}, nil)
	s.loads(waits, 2, []string{"y", "z"}, []string{"x"})
	s.loads(full, 2, []string{"y", "z"}, nil)
	s.wants(runs, "it runs the adapter")
	s.begins(runs, 2)
	s.wants(runs, "two are no more than it may have")
	s.begins(runs, 20)
	s.wants(fits, "the one that runs it has too much to do")
	s.begins(fits, 20)
	s.wantsAll("the next in line, of which one may suit as well", silent, waits)
	s.begins(silent, 20)
	s.begins(waits, 20)
	s.begins(full, 20)
	s.wants(runs, "all have as much to do, and it runs the adapter")
	s.begins(runs, 1)
	s.pass(time.Minute)
	s.wantsAll("what was said a minute ago says nothing: the least loaded", addrs[1:]...)

	s = newScript(t, onePool(Rules{Policy: LoRA}, runs, full))
	s.loads(runs, 2, []string{"y", "x"}, nil)
	s.loads(full, 2, []string{"y", "z"}, nil)
	s.begins(runs, 6)
	s.wants(full, "any is better than one that has too much to do")
}

// Of many endpoints the few that suit an adapter are found, and left when they
// have too much to do.
func TestLoRA_Many(t *testing.T) {
	addrs := many(2 * scanMax)
	s := newScript(t, onePool(Rules{Policy: LoRA}, addrs...))
	var runs []string
	for i, a := range addrs {
		room, running := 2, []string{"y", a}
		if i%20 == 10 {
			running[0] = "x"
			runs = append(runs, a)
		}
		if i%100 == 20 {
			room = 3
		}
		s.loads(a, room, running, nil)
	}
	s.wantsAll("they run the adapter", runs...)
	for range 50 {
		q := chat("z")
		if i := slices.Index(addrs, s.r.Decide(q).Endpoint); i%100 != 20 {
			t.Fatalf("no. %d takes an adapter that none runs, want one with room", i)
		}
	}
	for _, a := range runs {
		s.begins(a, 20)
	}
	s.pass(averageAge)
	for a := range s.picks(100) {
		if slices.Contains(runs, a) {
			t.Errorf("got %s, want one that has less to do", a)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	c := onePool(Rules{Policy: RoundRobin}, a1, a2, a3)
	c.Pools[0].Endpoints[0].Weight = 2
	c.Pools[0].Source = "file"
	s := newScript(t, c)
	s.begins(a2, 100) // load is no matter
	for round := range 5 {
		got := s.picks(4)
		if got[a1] != 2 || got[a2] != 1 || got[a3] != 1 {
			t.Errorf("round %d: got %v, want twice the first", round, got)
		}
	}
	s.r.SetHealthy(a3, false)
	if got := s.picks(30); got[a1] != 20 || got[a2] != 10 {
		t.Errorf("with one down: got %v", got)
	}
	s.r.SetHealthy(a3, true)
	if got := s.picks(40); got[a3] < 10 || got[a3] > 11 {
		t.Errorf("back again: got %v, want its share and not what it missed", got)
	}
	if err := s.r.SetEndpoints("default", []Endpoint{{Address: a1, Weight: 2}, {Address: a2}, {Address: a3}, {Address: b1}}); err != nil {
		t.Fatal(err)
	}
	if got := s.picks(50); got[b1] < 10 || got[b1] > 11 || got[a1] != 20 {
		t.Errorf("with one more: got %v", got)
	}
}

// A pool that changes goes on where it was.
func TestRoundRobin_GoesOn(t *testing.T) {
	c := onePool(Rules{Policy: RoundRobin}, a1, a2, a3)
	c.Pools[0].Source = "file"
	s := newScript(t, c)
	first := s.r.Decide(chat("x")).Endpoint
	if err := s.r.SetEndpoints("default", at(a1, a2, a3, b1)); err != nil {
		t.Fatal(err)
	}
	if got := s.picks(3); got[first] != 0 {
		t.Errorf("got %v, want the three that did not have their turn", got)
	}
}

func TestRandom(t *testing.T) {
	c := onePool(Rules{Policy: Random, Fallbacks: 2}, a1, a2, a3)
	c.Pools[0].Endpoints[0].Weight = 2
	s := newScript(t, c)
	s.begins(a2, 100)
	got := s.picks(4000)
	for a, want := range map[string]float64{a1: 2000, a2: 1000, a3: 1000} {
		if math.Abs(float64(got[a])-want) > 170 {
			t.Errorf("%s was picked %d times of 4000, want about %v", a, got[a], want)
		}
	}
	if d := s.r.Decide(chat("x")); len(d.Fallbacks) != 2 || slices.Contains(d.Fallbacks, d.Endpoint) || d.Fallbacks[0] == d.Fallbacks[1] {
		t.Errorf("got %s and then %q, want three that differ", d.Endpoint, d.Fallbacks)
	}
}

// Of more endpoints than are all looked at, the picks still go to those that have
// little to do, and to none that is not fit.
func TestLeastLoad_Sampled(t *testing.T) {
	addrs := many(2 * scanMax)
	s := newScript(t, onePool(Rules{}, addrs...))
	for i, a := range addrs {
		if i%4 == 0 {
			s.r.SetHealthy(a, false)
		}
	}
	const each = 3
	for range each * len(addrs) * 3 / 4 {
		s.begins(s.r.Decide(chat("x")).Endpoint, 1)
	}
	for i, a := range addrs {
		switch n := s.r.InFlight(a); {
		case i%4 == 0 && n != 0:
			t.Errorf("%s is down and has %d", a, n)
		case i%4 != 0 && (n < each-2 || n > each+1):
			t.Errorf("%s has %d, want about %d", a, n, each)
		}
	}
	for _, a := range addrs[2:] {
		s.r.SetHealthy(a, false)
	}
	s.r.SetHealthy(addrs[1], true)
	s.pass(averageAge)
	s.wants(addrs[1], "it is the only one that is not down")
}

func TestPolicies_Candidates(t *testing.T) {
	for _, policy := range Policies() {
		for _, n := range []int{1, 3, 40, scanMax + 100} {
			s := newScript(t, onePool(Rules{Policy: policy, Fallbacks: 7}, many(n)...))
			for kind := range 20 {
				d := s.r.Decide(asks(kind, 4))
				want := min(n, MaxCandidates)
				distinct := slices.Compact(slices.Sorted(slices.Values(d.Candidates)))
				if len(d.Candidates) != want || len(distinct) != want || d.Endpoint != d.Candidates[0] || d.Policy != policy {
					t.Errorf("%s of %d: got %s by %q of the candidates %q", policy, n, d.Endpoint, d.Policy, d.Candidates)
				}
				if !slices.Equal(d.Fallbacks, d.Candidates[1:]) {
					t.Errorf("%s of %d: got the fallbacks %q of the candidates %q", policy, n, d.Fallbacks, d.Candidates)
				}
			}
		}
	}
}

package route

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// found is a configuration with one pool whose endpoints are discovered.
func found(source string) Config {
	return Config{Pools: []Pool{{Name: "default", Source: source}, {Name: "fixed", Endpoints: at(b1)}}}
}

func mustSet(t *testing.T, r *Router, endpoints ...Endpoint) {
	t.Helper()
	if err := r.SetEndpoints("default", endpoints); err != nil {
		t.Fatalf("SetEndpoints: %v", err)
	}
}

// pooled returns the endpoints of the pool default, with their weights.
func pooled(r *Router) []string {
	var out []string
	p := r.table.Load().pools["default"]
	if p == nil {
		return nil
	}
	for _, m := range p.members.Load().list {
		out = append(out, m.addr+"*"+strconv.Itoa(m.weight))
	}
	return out
}

func TestSetEndpointsInOneForm(t *testing.T) {
	r := mustNew(t, found("dns"))
	f := func(want []string, endpoints ...Endpoint) {
		t.Helper()
		mustSet(t, r, endpoints...)
		if got := pooled(r); !slices.Equal(got, want) {
			t.Errorf("SetEndpoints(%v): got %q, want %q", endpoints, got, want)
		}
	}
	f([]string{a1 + "*1", a2 + "*1", "[fd00::7]:80*3"}, Endpoint{"[fd00:0::7]:80", 3}, Endpoint{a2, 0}, Endpoint{a1, 1})
	f([]string{a1 + "*7"}, Endpoint{a1, 2}, Endpoint{a1, 7}, Endpoint{a1, 0})
	f(nil)
	if d := r.Decide(chat("x")); d.Reason != ReasonNoEndpoint || d.Reject.Status != 503 {
		t.Errorf("with no endpoint found: got %+v, want a 503", d)
	}
}

func TestSetEndpointsThatCannotBe(t *testing.T) {
	r := mustNew(t, found("dns"))
	mustSet(t, r, at(a1)...)
	f := func(pool, want string, endpoints ...Endpoint) {
		t.Helper()
		err := r.SetEndpoints(pool, endpoints)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetEndpoints(%q, %v): got %v, want an error with %q", pool, endpoints, err, want)
		}
	}
	f("other", `there is no such pool, the pools are ["default" "fixed"]`, at(a2)...)
	f("fixed", "its endpoints are configured, not discovered", at(a2)...)
	f("default", `endpoints[1]: "10.0.0.7": want ip:port`, Endpoint{Address: a2}, Endpoint{Address: "10.0.0.7"})
	f("default", `endpoints[0]: the weight of "10.0.0.2:8000" is -1: want 0 to 1000000`, Endpoint{Address: a2, Weight: -1})
	f("default", "is 1000001: want 0 to 1000000", Endpoint{Address: a2, Weight: MaxWeight + 1})
	if got := pooled(r); !slices.Equal(got, []string{a1 + "*1"}) {
		t.Errorf("after the errors: got %q, want what was", got)
	}
}

// What leaves takes no new request; those it has are counted to their end, and
// its count is there when it comes back.
func TestSetEndpointsKeepsTheCounts(t *testing.T) {
	r := mustNew(t, found("dns"))
	mustSet(t, r, at(a1, a2)...)
	r.Begin(Load{Endpoint: a1, Tokens: 5})
	mustSet(t, r, at(a2)...)
	for range 4 {
		if d := r.Decide(chat("x")); d.Endpoint != a2 {
			t.Errorf("got %q, want %q, the only one left", d.Endpoint, a2)
		}
	}
	if n := r.InFlight(a1); n != 1 {
		t.Errorf("in flight where it left: got %d, want 1", n)
	}
	mustSet(t, r, at(a1, a2)...)
	if d := r.Decide(chat("x")); d.Endpoint != a2 || len(d.Candidates) != 2 {
		t.Errorf("got %q of %q, want the idle %q of two", d.Endpoint, d.Candidates, a2)
	}
	mustSet(t, r)
	r.End(Load{Endpoint: a1, Tokens: 5})
	if len(r.states) != 1 {
		t.Errorf("got %d states, want 1: the fixed pool's", len(r.states))
	}
}

// A new configuration keeps what a pool had until its source finds something
// else, be it another source or the pool's first.
func TestApplyKeepsWhatWasFound(t *testing.T) {
	r := mustNew(t, found("dns a"))
	mustSet(t, r, at(a1, a2)...)
	r.Begin(Load{Endpoint: a1})
	f := func(c Config, want ...string) {
		t.Helper()
		if err := r.Apply(c); err != nil {
			t.Fatalf("Apply: %v", err)
		}
		if got := pooled(r); !slices.Equal(got, want) {
			t.Errorf("after the change: got %q, want %q", got, want)
		}
	}
	more := found("dns a")
	more.Pools = append(more.Pools, Pool{Name: "more", Endpoints: at(a1)})
	f(more, a1+"*1", a2+"*1")
	if d := r.Decide(chat("x")); d.Endpoint != a2 {
		t.Errorf("got %q, want the idle %q", d.Endpoint, a2)
	}
	f(found("dns b"), a1+"*1", a2+"*1")
	mustSet(t, r, at(a3)...)
	f(found("dns b"), a3+"*1")
	f(Config{Pools: []Pool{{Name: "default", Endpoints: at(a2)}}}, a2+"*1")
	f(found("dns b"), a2+"*1")
	f(Config{})
	f(found("dns b"))
	if n := r.InFlight(a1); n != 1 {
		t.Errorf("in flight: got %d, want 1", n)
	}
}

func TestSetEndpointsConcurrentSafe(t *testing.T) {
	r := mustNew(t, found("dns"))
	mustSet(t, r, at(a1)...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				d := r.Decide(chat("x"))
				if d.Endpoint == "" {
					t.Errorf("a pool that is never empty: %+v", d.Reject)
					return
				}
				r.Begin(Load{Endpoint: d.Endpoint})
				r.End(Load{Endpoint: d.Endpoint})
			}
		})
	}
	for i := range 2 {
		wg.Go(func() {
			for round := range 200 {
				var err error
				if i == 0 {
					err = r.SetEndpoints("default", [][]Endpoint{at(a1, a2), at(a2, a3), at(a3)}[round%3])
				} else {
					err = r.Apply(found("dns"))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, e := range []string{a1, a2, a3} {
		if n := r.InFlight(e); n != 0 {
			t.Errorf("in flight at %s at the end: got %d, want 0", e, n)
		}
	}
}

// BenchmarkSetEndpoints changes one of 1000 endpoints.
func BenchmarkSetEndpoints(b *testing.B) {
	r := mustNew(b, found("dns"))
	var sets [2][]Endpoint
	for i := range 1000 {
		e := Endpoint{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, 1+i%250)}
		sets[0] = append(sets[0], e)
	}
	sets[1] = append(slices.Clone(sets[0][1:]), Endpoint{Address: "10.1.0.1:8000"})
	for i := 0; b.Loop(); i++ {
		if err := r.SetEndpoints("default", sets[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}

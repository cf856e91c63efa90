package route

import (
	"slices"
	"strconv"
	"sync"
	"testing"
)

const (
	a1, a2, a3 = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"
	b1         = "10.0.1.1:8000"
)

func mustNew(t testing.TB, c Config) *Router {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return r
}

// chat is a request for model as /v1/chat/completions brings it.
func chat(model string) Request {
	return Request{Path: "/v1/chat/completions", Model: model, HasModel: true, JSON: true, HasBody: true}
}

func TestDecideFindsThePool(t *testing.T) {
	withDefault := mustNew(t, Config{
		Pools: []Pool{{Name: "default", Endpoints: at(a1)}, {Name: "b", Endpoints: at(b1)}, {Name: "none"}},
		Models: []Model{
			{Name: "llama", Targets: []Target{{Pool: "b", Model: "llama-v2", Weight: 1}}},
			{Name: "same", Targets: []Target{{Pool: "b", Model: "same", Weight: 1}}},
			{Name: "nowhere", Targets: []Target{{Pool: "none", Weight: 1}}},
		},
	})
	without := mustNew(t, Config{
		Pools:  []Pool{{Name: "b", Endpoints: at(b1)}},
		Models: []Model{{Name: "llama", Targets: []Target{{Pool: "b", Weight: 1}}}},
	})
	get := Request{Path: "/v1/models"}
	text := Request{Path: "/x", HasBody: true}
	noModel := Request{Path: "/v1/chat/completions", HasBody: true, JSON: true}
	form := Request{Path: "/v1/audio/transcriptions", HasBody: true, Model: "llama", HasModel: true}
	other := chat("gpt")
	other.Path = "/v1/embeddings"

	// want: pool endpoint model reason status
	f := func(r *Router, q Request, want string) {
		t.Helper()
		d := r.Decide(q)
		status := 0
		if d.Reject != nil {
			status = d.Reject.Status
			if d.Reject.Reason != d.Reason {
				t.Errorf("Decide(%+v): the rejection's reason is %q, the decision's %q", q, d.Reject.Reason, d.Reason)
			}
		}
		got := d.Pool + " " + d.Endpoint + " " + d.Model + " " + d.Reason + " " + strconv.Itoa(status)
		if got != want {
			t.Errorf("Decide(%+v):\n got %q\nwant %q", q, got, want)
		}
		if (d.Policy == LeastLoad) != (d.Pool != "") {
			t.Errorf("Decide(%+v): policy %q", q, d.Policy)
		}
	}
	f(withDefault, chat("llama"), "b 10.0.1.1:8000 llama-v2 model 0")
	f(withDefault, chat("same"), "b 10.0.1.1:8000  model 0")
	f(withDefault, chat("gpt"), "default 10.0.0.1:8000  default 0")
	f(withDefault, chat(""), "default 10.0.0.1:8000  unnamed 0")
	f(withDefault, other, "default 10.0.0.1:8000  default 0")
	f(withDefault, get, "default 10.0.0.1:8000  unnamed 0")
	f(withDefault, text, "default 10.0.0.1:8000  unnamed 0")
	f(withDefault, noModel, "default 10.0.0.1:8000  unnamed 0")
	f(withDefault, form, "b 10.0.1.1:8000  model 0") // routed by its model, never rewritten
	f(withDefault, chat("nowhere"), "none   no_endpoint 503")

	f(without, chat("llama"), "b 10.0.1.1:8000  model 0")
	f(without, chat("gpt"), "   unknown_model 404")
	f(without, other, "   unknown_model 404")
	f(without, chat(""), "   no_model 400")
	f(without, noModel, "   no_model 400")
	f(without, text, "   no_model 400")
	f(without, get, "   no_model 404")
}

func TestDecideWithinTheSubset(t *testing.T) {
	c := Config{Pools: []Pool{{Name: "default", Endpoints: at(a1, a2, a3, "[fd00::7]:80")}, {Name: "none"}},
		Models: []Model{{Name: "nowhere", Targets: []Target{{Pool: "none", Weight: 1}}}}}
	f := func(q Request, want []string, reason string, subset ...string) {
		t.Helper()
		q.Subset, q.HasSubset = subset, true
		d := mustNew(t, c).Decide(q)
		got := slices.Sorted(slices.Values(d.Candidates))
		if !slices.Equal(got, want) || d.Reason != reason {
			t.Errorf("Decide in the subset %q: got %q for %q, want %q for %q", subset, got, d.Reason, want, reason)
		}
		if rejected := d.Reject != nil && d.Reject.Status == 503; rejected != (len(want) == 0) {
			t.Errorf("Decide in the subset %q: got rejection %+v", subset, d.Reject)
		}
	}
	get := Request{Path: "/v1/models"}
	f(chat("x"), []string{a2}, "default", a2)
	f(get, []string{a2}, "unnamed", a2)
	f(chat("x"), []string{a1, a3}, "default", a3, "10.9.9.9:8000", a1, a3, a3)
	f(chat("x"), []string{"[fd00::7]:80"}, "default", "[fd00:0::7]:80")
	f(chat("x"), nil, "not_in_subset", "10.0.0.1:8001") // the port is another server's
	f(chat("x"), nil, "not_in_subset", "10.0.0.1")
	f(chat("x"), nil, "not_in_subset", a1+","+a2)
	f(chat("x"), nil, "not_in_subset", "")
	f(chat("x"), nil, "not_in_subset")
	f(get, nil, "not_in_subset")
	f(chat("nowhere"), nil, "no_endpoint", a1)
}

func TestDecideTakesTheLeastLoaded(t *testing.T) {
	r := mustNew(t, Config{Pools: []Pool{{Name: "default", Endpoints: at(a1, a2, a3)}}})
	r.Begin(Load{Endpoint: a1})
	r.Begin(Load{Endpoint: a1})
	r.Begin(Load{Endpoint: a3})
	d := r.Decide(chat("x"))
	if want := []string{a2, a3, a1}; !slices.Equal(d.Candidates, want) || d.Endpoint != a2 {
		t.Errorf("got %q of %q, want %q of %q", d.Endpoint, d.Candidates, a2, want)
	}
	r.Begin(Load{Endpoint: a2})
	r.Begin(Load{Endpoint: a2})
	r.End(Load{Endpoint: a1})
	r.End(Load{Endpoint: a1})
	if d := r.Decide(chat("x")); d.Endpoint != a1 {
		t.Errorf("got %q, want the idle %q", d.Endpoint, a1)
	}
}

func TestDecideSharesAmongTheIdle(t *testing.T) {
	r := mustNew(t, Config{Pools: []Pool{{Name: "default", Endpoints: at(a1, a2, a3, b1)}}})
	r.Begin(Load{Endpoint: a2}) // busy: takes no share
	got := map[string]int{}
	for range 300 {
		e := r.Decide(chat("x")).Endpoint
		r.Begin(Load{Endpoint: e})
		r.End(Load{Endpoint: e})
		got[e]++
	}
	for _, e := range []string{a1, a3, b1} {
		if got[e] != 100 {
			t.Errorf("%s was picked %d times of 300, want 100 (%v)", e, got[e], got)
		}
	}
}

func TestDecideNamesTheBestCandidates(t *testing.T) {
	var endpoints []string
	for i := range 20 {
		endpoints = append(endpoints, "10.0.2."+strconv.Itoa(i)+":80")
	}
	r := mustNew(t, Config{Pools: []Pool{{Name: "default", Endpoints: at(endpoints...)}}})
	for i, e := range endpoints {
		for range 20 - i {
			r.Begin(Load{Endpoint: e})
		}
	}
	want := slices.Clone(endpoints[12:])
	slices.Reverse(want)
	if got := r.Decide(chat("x")).Candidates; !slices.Equal(got, want) {
		t.Errorf("got the candidates %q, want %q", got, want)
	}
}

func TestDecideKeepsTheWeights(t *testing.T) {
	f := func(weights ...int) {
		t.Helper()
		var c Config
		m := Model{Name: "m"}
		total := 0
		for i, w := range weights {
			name := "p" + strconv.Itoa(i)
			c.Pools = append(c.Pools, Pool{Name: name, Endpoints: at("10.0.0." + strconv.Itoa(i+1) + ":80")})
			m.Targets = append(m.Targets, Target{Pool: name, Weight: w, Model: "m" + strconv.Itoa(i)})
			total += w
		}
		c.Models = []Model{m}
		r := mustNew(t, c)
		for round := range 3 {
			got := make([]int, len(weights))
			for range total {
				d := r.Decide(chat("m"))
				if d.Model != "m"+d.Pool[1:] {
					t.Fatalf("weights %v: the pool %s was told the model %q", weights, d.Pool, d.Model)
				}
				i, err := strconv.Atoi(d.Pool[1:])
				if err != nil {
					t.Fatalf("pool %q: %v", d.Pool, err)
				}
				got[i]++
			}
			if !slices.Equal(got, weights) {
				t.Errorf("round %d of the weights %v: got %v", round, weights, got)
			}
		}
	}
	f(90, 10)
	f(1)
	f(0, 3)
	f(5, 1, 1)
	f(0, 7, 0, 13, 29)
}

// A canary of one in ten comes once in every ten, not ten times in a hundred.
func TestDecideSpreadsTheWeights(t *testing.T) {
	r := mustNew(t, Config{
		Pools:  []Pool{{Name: "a", Endpoints: at(a1)}, {Name: "b", Endpoints: at(b1)}},
		Models: []Model{{Name: "m", Targets: []Target{{Pool: "a", Weight: 9}, {Pool: "b", Weight: 1}}}},
	})
	for i := range 20 {
		n := 0
		for range 10 {
			if r.Decide(chat("m")).Pool == "b" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("ten choices no. %d: the canary took %d, want 1", i, n)
		}
	}
}

func TestApplyKeepsWhatIsInFlight(t *testing.T) {
	one := Config{Pools: []Pool{{Name: "default", Endpoints: at(a1, a2)}}}
	two := Config{Pools: []Pool{{Name: "default", Endpoints: at(a2, a3)}}}
	r := mustNew(t, one)
	r.Begin(Load{Endpoint: a1})
	r.Begin(Load{Endpoint: a2})
	if err := r.Apply(two); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if d := r.Decide(chat("x")); d.Endpoint != a3 || len(d.Candidates) != 2 {
		t.Errorf("after the change: got %q of %q, want the idle %q of two", d.Endpoint, d.Candidates, a3)
	}
	if err := r.Apply(Config{Pools: []Pool{{Name: "default", Endpoints: at("x")}}}); err == nil {
		t.Error("Apply of a bad configuration: no error")
	}
	if d := r.Decide(chat("x")); d.Endpoint != a3 {
		t.Errorf("after a bad change: got %q, want %q as before", d.Endpoint, a3)
	}
	if err := r.Apply(one); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if got := [3]int{r.InFlight(a1), r.InFlight(a2), r.InFlight(a3)}; got != [3]int{1, 1, 0} {
		t.Errorf("in flight after two changes: got %v, want [1 1 0]", got)
	}
	r.End(Load{Endpoint: a1})
	r.End(Load{Endpoint: a2})
	if got := r.InFlight(a1) + r.InFlight(a2); got != 0 {
		t.Errorf("in flight at the end: got %d, want 0", got)
	}
}

func TestStatesAreBounded(t *testing.T) {
	r := mustNew(t, Config{Pools: []Pool{{Name: "default", Endpoints: at(a1)}}})
	for i := range 1000 {
		e := "10.1.0.1:" + strconv.Itoa(i+1)
		r.Begin(Load{Endpoint: e})
		if r.InFlight(e) != 1 {
			t.Fatalf("in flight at %s: got %d, want 1", e, r.InFlight(e))
		}
		r.End(Load{Endpoint: e})
	}
	r.Begin(Load{Endpoint: b1})
	if err := r.Apply(Config{}); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if len(r.states) != 1 {
		t.Errorf("got %d states, want 1: the one in flight", len(r.states))
	}
	r.End(Load{Endpoint: b1})
	r.End(Load{Endpoint: b1}) // one too many changes nothing
	r.End(Load{Endpoint: a1})
	if len(r.states) != 0 {
		t.Errorf("got %d states, want none", len(r.states))
	}
	r.Begin(Load{Endpoint: a1})
	if got := r.InFlight(a1); got != 1 {
		t.Errorf("in flight at %s: got %d, want 1", a1, got)
	}
}

func TestDecideConcurrentSafe(t *testing.T) {
	c := Config{
		Pools: []Pool{{Name: "default", Endpoints: at(a1, a2, a3)}, {Name: "b", Endpoints: at(b1)}},
		Models: []Model{{Name: "m", Targets: []Target{
			{Pool: "default", Weight: 3}, {Pool: "b", Weight: 1}}}},
	}
	r := mustNew(t, c)
	const workers, rounds = 8, 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	pools := map[string]int{}
	for range workers {
		wg.Go(func() {
			got := map[string]int{}
			for range rounds {
				d := r.Decide(chat("m"))
				r.Begin(Load{Endpoint: d.Endpoint})
				got[d.Pool]++
				r.End(Load{Endpoint: d.Endpoint})
			}
			mu.Lock()
			defer mu.Unlock()
			for p, n := range got {
				pools[p] += n
			}
		})
	}
	wg.Wait()
	if pools["b"] != workers*rounds/4 {
		t.Errorf("the pool b took %d of %d, want a quarter", pools["b"], workers*rounds)
	}
	for range 4 {
		wg.Go(func() {
			for range rounds {
				d := r.Decide(chat("x"))
				r.Begin(Load{Endpoint: d.Endpoint})
				r.End(Load{Endpoint: d.Endpoint})
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if err := r.Apply(c); err != nil {
				t.Errorf("Apply: %v", err)
			}
		}
	})
	wg.Wait()
	for _, e := range []string{a1, a2, a3, b1} {
		if n := r.InFlight(e); n != 0 {
			t.Errorf("in flight at %s at the end: got %d, want 0", e, n)
		}
	}
}

// at are endpoints of equal weight at addresses.
func at(addresses ...string) []Endpoint {
	out := make([]Endpoint, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, Endpoint{Address: a})
	}
	return out
}

package route

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPredict(t *testing.T) {
	s := newScript(t, onePool(byPrefix, a1))
	f := func(q Request, cached Opt[int64], tokens int) {
		t.Helper()
		d := s.r.Decide(q)
		if d.PredictedCached != cached || d.Tokens != tokens {
			t.Errorf("got %v cached and %d to read, want %v and %d", d.PredictedCached, d.Tokens, cached, tokens)
		}
	}
	f(asks(1, 2), Some[int64](0), (2*512+100)/4)
	f(asks(1, 4), Some[int64](2*512/4), (4*512+100)/4-2*512/4)
	f(asks(1, 3), Some[int64](3*512/4), (3*512+100)/4-3*512/4)
	f(asks(2, 3), Some[int64](0), (3*512+100)/4)
	f(asks(3, 0), Opt[int64]{}, 25)
	f(chat("x"), Opt[int64]{}, 0)
	other := asks(1, 4)
	other.Model = "y"
	f(other, Some[int64](0), (4*512+100)/4)

	for range 200 {
		s.r.Done(Result{Endpoint: a1, Model: "x", PromptBytes: 8000, PromptTokens: Some[int64](1000)})
	}
	f(asks(1, 4), Some[int64](4*512/8), 2148/8-4*512/8)
	f(other, Some[int64](4*512/4), 25)
	s.r.Done(Result{Endpoint: a1, Model: "x", PromptBytes: 8000})
	f(asks(1, 4), Some[int64](4*512/8), 2148/8-4*512/8)
}

// What an endpoint has, another does not.
func TestPredict_ByEndpoint(t *testing.T) {
	s := newScript(t, onePool(byPrefix, a1, a2))
	first := s.r.Decide(asks(1, 4))
	s.begins(first.Endpoint, 50)
	if d := s.r.Decide(asks(1, 4)); d.Endpoint == first.Endpoint || d.PredictedCached.V != 0 {
		t.Errorf("got %v at %s, want nothing at the other endpoint", d.PredictedCached, d.Endpoint)
	}
	if d := s.r.Decide(asks(1, 4)); d.PredictedCached.V != 512 {
		t.Errorf("got %v, want all of the second time there", d.PredictedCached)
	}
}

func TestCached_Model(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var c cached
	c.limit = 50
	var used []uint64 // least lately used first
	for range 20_000 {
		key := uint64(rnd.IntN(80))
		i := slices.Index(used, key)
		c.mu.Lock()
		got := c.use(key)
		c.mu.Unlock()
		if got != (i >= 0) {
			t.Fatalf("key %d: known is %t, want %t", key, got, i >= 0)
		}
		if i >= 0 {
			used = slices.Delete(used, i, i+1)
		} else if len(used) == 50 {
			used = used[1:]
		}
		used = append(used, key)
		if len(c.at) != len(used) || len(c.nodes) > 51 {
			t.Fatalf("%d are known in %d nodes, want %d", len(c.at), len(c.nodes), len(used))
		}
	}
}

func TestSizes_Bounded(t *testing.T) {
	var s sizes
	for i := range maxSizes + 10 {
		s.learn(many(maxSizes + 10)[i], 500, 100)
	}
	if len(s.each) != maxSizes {
		t.Errorf("got %d models, want %d", len(s.each), maxSizes)
	}
	if got := s.of(many(1)[0]); got != 5 {
		t.Errorf("got %v bytes a token, want 5", got)
	}
}

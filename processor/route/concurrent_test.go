package route

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Everything at once: no race, no deadlock, and nothing is left counted.
func TestRouterConcurrentSafe(t *testing.T) {
	addrs := many(scanMax + 50)
	var pools []Pool
	for _, policy := range Policies() {
		u := ejecting
		u.Policy, u.SlowStart, u.PanicThreshold = policy, time.Second, 0.2
		pools = append(pools, Pool{Name: policy, Source: "file", Endpoints: at(addrs...), Rules: u})
	}
	var models []Model
	for _, policy := range Policies() {
		models = append(models, Model{Name: policy, Targets: []Target{{Pool: policy, Weight: 1}}})
	}
	c := Config{Pools: pools, Models: models}
	r := mustNew(t, c)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 0))
			for i := range 400 {
				q := asks(rnd.IntN(10), rnd.IntN(9))
				q.Model = Policies()[rnd.IntN(len(pools))]
				d := r.Decide(q)
				if d.Endpoint == "" {
					t.Errorf("rejected for %s", d.Reason)
					return
				}
				id := span(worker*1000 + i)
				l := Load{Endpoint: d.Endpoint, Tokens: d.Tokens}
				r.Expect(id, l)
				r.Arrived(id)
				r.Begin(l)
				r.Prefilled(l)
				r.End(Load{Endpoint: d.Endpoint})
				r.Done(Result{Pool: d.Pool, Endpoint: d.Endpoint, Failure: Failure(rnd.IntN(5)), Headers: 1, TPOT: time.Millisecond})
			}
		})
	}
	wg.Go(func() {
		for i := range 300 {
			a := addrs[i%len(addrs)]
			r.SetSignals(a, Signals{Running: Some(1.0), MaxLoRA: Some(1), RunningLoRA: []string{"x"}})
			r.SetHealthy(a, i%3 > 0)
			if i%10 == 0 {
				r.Endpoints()
			}
		}
	})
	wg.Go(func() {
		for i := range 50 {
			if err := r.SetEndpoints(Policies()[i%len(pools)], at(addrs[i%7:]...)); err != nil {
				t.Errorf("SetEndpoints: %v", err)
			}
			if i%10 == 0 {
				if err := r.Apply(c); err != nil {
					t.Errorf("Apply: %v", err)
				}
			}
		}
	})
	wg.Wait()
	for _, e := range r.Endpoints() {
		if e.InFlight != 0 || e.Expected != 0 || e.Tokens != 0 {
			t.Errorf("left: %+v", e)
		}
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// The fleet: eight servers, of which one takes three times as long as the others
// and one dies.
const (
	servers    = 8
	slowServer = 2
	slowness   = 3
	deadServer = 5
	scrape     = 200 * time.Millisecond
)

// scenario is one run of the fleet.
type scenario struct {
	policy string
	// replicas of the processor: each request is decided on by one and observed
	// by another, as in the split form.
	replicas int
	rate     float64 // new conversations a second
	duration time.Duration
	seed     uint64
}

// outcome is what a run showed.
type outcome struct {
	requests, failed int
	ttft             []time.Duration
	cached, prompt   int // tokens
	// most is how many requests the fleet had at most, and crowded how many one
	// server of it had.
	most, crowded int
}

// fleet is a scenario under way.
type fleet struct {
	scenario

	clock   clock
	rnd     *rand.Rand // of who decides and who observes
	clients *rand.Rand
	servers []*server
	byAddr  map[string]*server
	routers []*route.Router
	at      map[string]int // requests at each server
	all     int            // and at all of them
	spans   uint64
	out     outcome
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// simulate runs a scenario. The same scenario has the same outcome.
func simulate(l law, s scenario) (outcome, error) {
	f := &fleet{scenario: s, byAddr: map[string]*server{}, at: map[string]int{}}
	// The clients have a source of their own: every policy gets the same ones.
	f.rnd, f.clients = rand.New(rand.NewPCG(s.seed, 1)), rand.New(rand.NewPCG(s.seed, 2))
	pool := route.Pool{Name: route.DefaultPool, Rules: rules(s.policy)}
	for i := range servers {
		v := &server{clock: &f.clock, law: l, rnd: rand.New(rand.NewPCG(s.seed, uint64(10+i))), addr: fmt.Sprintf("10.0.0.%d:8000", i+1), slow: 1}
		if i == slowServer {
			v.slow = slowness
		}
		f.servers, f.byAddr[v.addr] = append(f.servers, v), v
		pool.Endpoints = append(pool.Endpoints, route.Endpoint{Address: v.addr})
	}
	for i := range s.replicas {
		random := rand.New(rand.NewPCG(s.seed, uint64(100+i)))
		r, err := route.New(route.Config{
			Pools: []route.Pool{pool}, Random: random.Uint64,
			Now: func() time.Time { return epoch.Add(f.clock.now) },
		})
		if err != nil {
			return outcome{}, fmt.Errorf("set up replica %d: %w", i, err)
		}
		f.routers = append(f.routers, r)
		f.clock.after(scrape*time.Duration(i)/time.Duration(s.replicas), func() { f.scrape(r) })
	}
	f.clock.after(0, f.arrive)
	f.clock.after(s.duration/2, f.servers[deadServer].die)
	f.clock.run(s.duration)
	return f.out, nil
}

// rules are those of a configuration that says nothing but the policy.
func rules(policy string) route.Rules {
	return route.Rules{
		Policy: policy, LoadBound: route.DefaultLoadBound, SlowStart: 10 * time.Second, PanicThreshold: .2,
		Eject: route.Eject{Failures: 5, Rate: .5, Base: 10 * time.Second, Max: 5 * time.Minute, Share: .5},
	}
}

// arrive has a client come, and the next one after it.
func (f *fleet) arrive() {
	f.ask(begin(f.clients))
	f.clock.after(time.Duration(f.clients.ExpFloat64()/f.rate*float64(time.Second)), f.arrive)
}

// ask sends the next turn of a conversation.
func (f *fleet) ask(c *conversation) {
	t := c.next()
	f.out.requests++
	begun := f.clock.now
	f.spans++
	var span [8]byte
	for i := range span {
		span[i] = byte(f.spans >> (8 * i))
	}
	decider := f.routers[f.rnd.IntN(len(f.routers))]
	observer := f.routers[f.rnd.IntN(len(f.routers))]
	d := decider.Decide(route.Request{
		Method: "POST", Path: "/v1/chat/completions", Model: "m", HasModel: true, JSON: true, HasBody: true,
		Prefix: t.prefix, PromptBytes: t.promptBytes,
	})
	if d.Reject != nil {
		f.out.failed++
		return
	}
	load := route.Load{Endpoint: d.Endpoint, Tokens: t.promptBytes / bytesPerToken}
	decider.Expect(span, load)
	observer.Arrived(span)
	observer.Begin(load)
	result := route.Result{Pool: d.Pool, Endpoint: d.Endpoint, Model: "m", PromptBytes: t.promptBytes}
	leave := func(failure route.Failure) {
		f.crowd(d.Endpoint, -1)
		observer.End(load)
		result.Failure = failure
		observer.Done(result)
		if failure != route.NoFailure {
			f.out.failed++
		}
	}
	f.crowd(d.Endpoint, 1)
	v := f.byAddr[d.Endpoint]
	k := &call{prompt: t.blocks, tokens: t.tokens, output: t.output}
	k.first = func() {
		result.TTFT = f.clock.now - begun
		result.Headers = result.TTFT
		result.Served = d.Endpoint
		f.out.ttft = append(f.out.ttft, result.TTFT)
		f.out.cached, f.out.prompt = f.out.cached+k.cached, f.out.prompt+k.tokens
	}
	k.done = func() {
		if t.output > 1 {
			result.TPOT = (f.clock.now - begun - result.TTFT) / time.Duration(t.output-1)
		}
		result.PromptTokens, result.CachedTokens = route.Some(int64(k.tokens)), route.Some(int64(k.cached))
		leave(route.NoFailure)
		if c.turns > 0 {
			f.clock.after(c.think(), func() { f.ask(c) })
		}
	}
	k.failed = func() { leave(route.FailedReset) }
	f.clock.after(v.law.front, func() {
		if !v.take(k) {
			leave(route.FailedStatus) // Envoy's own 503
		}
	})
}

// crowd counts n more requests at a server.
func (f *fleet) crowd(addr string, n int) {
	f.at[addr] += n
	f.all += n
	f.out.crowded, f.out.most = max(f.out.crowded, f.at[addr]), max(f.out.most, f.all)
}

// scrape tells a replica what the servers say, now and from now on.
func (f *fleet) scrape(r *route.Router) {
	for _, v := range f.servers {
		r.SetHealthy(v.addr, !v.dead)
		if v.dead {
			continue
		}
		r.SetSignals(v.addr, route.Signals{
			At: epoch.Add(f.clock.now), Interval: scrape,
			Running: route.Some(float64(len(v.running))), Waiting: route.Some(float64(len(v.waiting))),
			KVUsage: route.Some(float64(v.held) / serverBlocks),
		})
	}
	f.clock.after(scrape, func() { f.scrape(r) })
}

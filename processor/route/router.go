package route

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Router decides where requests go and counts what is in flight at each
// endpoint. It is safe for concurrent use.
type Router struct {
	table atomic.Pointer[table]
	turns atomic.Uint64 // numbers the picks, for state.turn
	now   func() time.Time
	epoch time.Time // what moments count from

	random func() uint64
	// ejected is told of ejections; nil: nobody is.
	ejected func(Ejection)

	expected expectations
	cached   cached
	sizes    sizes
	// ejecting is held while an endpoint is ejected, so that two at once do not
	// exceed a pool's share.
	ejecting sync.Mutex

	// mu guards states and every state's member. It is held for reading by all
	// but what adds or removes a state.
	mu sync.RWMutex
	// states has every address that is in a pool or has exchanges in flight, so
	// that it is bounded by the two and outlives a change of the pools.
	states map[string]*state
}

// New returns a Router for c. Its errors begin with the key path of the fault,
// as in `pools[0].endpoints[1]`.
func New(c Config) (*Router, error) {
	r := &Router{states: make(map[string]*state), now: c.Now, ejected: c.Ejected}
	r.cached.limit = maxCached
	if r.now == nil {
		r.now = time.Now
	}
	r.epoch = r.now()
	if r.random = c.Random; r.random == nil {
		r.random = rand.Uint64
	}
	r.table.Store(new(table))
	if err := r.Apply(c); err != nil {
		return nil, err
	}
	for _, s := range r.states {
		s.standing.since.Store(0) // we came, not they
	}
	return r, nil
}

// clock is the moment that it is now.
func (r *Router) clock() time.Duration { return r.now().Sub(r.epoch) }

// Apply replaces what the router routes by. Decisions under way end by the old
// configuration; the counts of what is in flight stay. With an error nothing
// has changed.
func (r *Router) Apply(c Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := compile(c)
	if err != nil {
		return err
	}
	running := r.table.Load()
	for name, p := range t.pools {
		was := running.pools[name]
		if was != nil {
			p.door.follow(&was.door)
		}
		if p.source != "" && was != nil {
			// Until the source speaks, what was is better than nothing.
			p.members.Store(was.members.Load())
			p.rotation = was.rotation
		}
	}
	r.settle(t)
	r.table.Store(t)
	return nil
}

// settle gives every member of t its state, and lets go of the states that no
// member and no exchange needs. r.mu is held.
func (r *Router) settle(t *table) {
	needed := make(map[string]bool)
	for _, p := range t.pools {
		r.adopt(p.members.Load())
		for _, m := range p.members.Load().list {
			needed[m.addr] = true
		}
	}
	for addr, s := range r.states {
		s.member = needed[addr]
		if !s.member && s.inFlight.Load() == 0 {
			delete(r.states, addr)
		}
	}
}

// Decide says where q goes. It counts nothing as in flight: Begin does.
func (r *Router) Decide(q Request) Decision {
	if d, own := r.answer(q); own {
		return d
	}
	p, model, reason := r.resolve(q)
	if p == nil {
		rej := noModel(q.HasBody)
		if reason == ReasonUnknownModel {
			rej = unknownModel(q.Model)
		}
		return Decision{Reason: reason, Reject: rej}
	}
	now := r.clock()
	r.expire(now) // what is expected no more must not keep requests away
	d := Decision{Pool: p.name, Policy: p.rules.Policy, Reason: reason}
	if d.Reject = p.refuse(&q, now); d.Reject != nil {
		d.Reason = d.Reject.Reason
		return d
	}
	if q.JSON && model != q.Model {
		d.Model = model
	}
	r.pick(p, &q, model, now, &d)
	if len(d.Candidates) > 0 {
		p.door.empty.end()
		return d
	}
	d.Model = ""
	d.Reason = ReasonNoEndpoint
	if q.HasSubset && len(p.members.Load().list) > 0 {
		d.Reason = ReasonNotInSubset
	}
	d.Reject = noEndpoint(p.name, d.Reason, retryAfter(p.door.empty.lasted(now)))
	return d
}

// pick picks from p for q, whose model the servers know as model, and puts the
// pick into d. Without one d stays as it is.
func (r *Router) pick(p *pool, q *Request, model string, now time.Duration, d *Decision) {
	k := picks.Get().(*pick) //nolint:forcetypeassert // it holds nothing else
	defer picks.Put(k)
	if !k.begin(r, p, q, model, now) {
		return
	}
	k.choose(p)
	first := k.member(k.list.best[0].place)
	d.Score = first.cost(k.rules, &k.mean, now)
	d.Candidates = k.candidates()
	d.Endpoint = d.Candidates[0]
	d.Fallbacks = d.Candidates[1:min(1+p.rules.Fallbacks, len(d.Candidates))]
	r.predict(first, q, model, d)
}

// Begin counts l as in flight at its endpoint, which need not be in a pool:
// Envoy's fallback may have served it.
func (r *Router) Begin(l Load) {
	r.mu.RLock()
	s := r.states[l.Endpoint]
	if s != nil {
		s.enter(l)
	}
	r.mu.RUnlock()
	if s != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s = r.states[l.Endpoint]; s == nil {
		s = new(state)
		r.states[l.Endpoint] = s
	}
	s.enter(l)
}

// Prefilled says that the server has read the prompt of l: its tokens are none
// any more, and its End is to have none.
func (r *Router) Prefilled(l Load) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.states[l.Endpoint]; s != nil {
		s.tokens.Add(-int64(l.Tokens))
	}
}

// End takes back one Begin of l.
func (r *Router) End(l Load) {
	r.mu.RLock()
	s := r.states[l.Endpoint]
	stray := false
	if s != nil {
		stray = s.leave(l) && !s.member
	}
	r.mu.RUnlock()
	if !stray {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another Begin or Apply may have come in between the two locks.
	if s = r.states[l.Endpoint]; s != nil && !s.member && s.inFlight.Load() == 0 {
		delete(r.states, l.Endpoint)
	}
}

// InFlight is the number of exchanges at endpoint that have begun and not ended.
func (r *Router) InFlight(endpoint string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.states[endpoint]; s != nil {
		return int(s.inFlight.Load())
	}
	return 0
}

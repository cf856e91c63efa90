package route

import "time"

// Failure is how a server failed an exchange. What a client did, and what the
// server refused, is none.
type Failure uint8

// The failures.
const (
	NoFailure     Failure = iota
	FailedConnect         // there was no connection to be had
	FailedReset           // it broke off
	FailedTimeout         // it did not answer, or stopped, for too long
	FailedStatus          // it answered with 5xx
)

// Result is what an exchange showed of the endpoint that served it.
type Result struct {
	// Pool and Endpoint are what was decided, Served who answered by Envoy's
	// account, "" where it does not tell.
	Pool, Endpoint, Served string
	Failure                Failure
	// Headers is the time to the response headers, TTFT that to the first token,
	// TPOT that for each token after it; 0: not known.
	Headers, TTFT, TPOT time.Duration
	// Model is the name that was asked for.
	Model string
	// PromptBytes is the length of the prompt, 0 where it is not known whole.
	PromptBytes                int
	PromptTokens, CachedTokens Opt[int64]
}

// served is the endpoint that the result is about.
func (r *Result) served() string {
	if r.Served != "" {
		return r.Served
	}
	return r.Endpoint
}

// Done takes what an exchange showed, once, when it is over. Endpoints that are
// in no pool are passed over.
func (r *Router) Done(d Result) {
	now := r.clock()
	r.sizes.learn(d.Model, d.PromptBytes, d.PromptTokens.V)
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := r.states[d.served()]
	if s == nil || !s.member {
		return
	}
	s.mu.Lock()
	s.observed.Store(s.observed.Load().with(&d, now))
	s.mu.Unlock()

	p := r.table.Load().pools[d.Pool]
	if p == nil {
		return
	}
	m := p.members.Load()
	if m.find(d.served()) == nil {
		return
	}
	r.judge(p, m, s, d.Failure == NoFailure && d.Headers > 0, d.Failure != NoFailure, now)
	if picked := m.find(d.Endpoint); picked != nil && picked.state != s {
		// Envoy passed the pick over for another of the pool: it tried it in vain, or
		// knows that it need not try.
		r.judge(p, m, picked.state, false, true, now)
	}
}

// judge notes how an exchange at s, one of m, went, and ejects s where that is due.
func (r *Router) judge(p *pool, m *members, s *state, success, failure bool, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.standing.note(&p.rules.Eject, success, failure, now) {
		return
	}
	r.ejecting.Lock()
	defer r.ejecting.Unlock()
	if m.mayEject(&p.rules.Eject, now) {
		s.standing.eject(&p.rules.Eject, now)
	}
}

// observed is what exchanges showed of an endpoint, smoothed over them. It does
// not change.
type observed struct {
	headers, ttft, tpot smoothed
	at                  time.Duration // of the last exchange
}

// with is o after one more exchange; o may be nil.
func (o *observed) with(d *Result, now time.Duration) *observed {
	var next observed
	if o != nil {
		next = *o
	}
	next.at = now
	next.headers.add(d.Headers)
	next.ttft.add(d.TTFT)
	next.tpot.add(d.TPOT)
	return &next
}

// smoothed is an exponential mean of times; 0 is none yet.
type smoothed time.Duration

// smoothing is the weight of the times before, against 1 for the one that comes.
const smoothing = 9

func (s *smoothed) add(d time.Duration) {
	switch {
	case d <= 0:
	case *s == 0:
		*s = smoothed(d)
	default:
		*s = (smoothing**s + smoothed(d)) / (smoothing + 1)
	}
}

func (s smoothed) value() Opt[time.Duration] {
	return Opt[time.Duration]{V: time.Duration(s), OK: s > 0}
}

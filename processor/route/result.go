package route

import "time"

// Failure is how a server failed an exchange. What a client did, and what the
// server refused, is none.
type Failure uint8

// The failures.
const (
	NoFailure        Failure = iota
	FailedConnect            // there was no connection to be had
	FailedReset              // it broke off
	FailedTimeout            // it did not answer, or stopped, for too long
	FailedStatus             // it answered with 5xx
	FailedPassedOver         // Envoy took another of the pool instead
)

// String is the failure in a word, for logs.
func (f Failure) String() string {
	switch f {
	case NoFailure:
		return "none"
	case FailedConnect:
		return "connect"
	case FailedReset:
		return "reset"
	case FailedTimeout:
		return "timeout"
	case FailedStatus:
		return "status"
	case FailedPassedOver:
		return "passed_over"
	default:
		return "unknown"
	}
}

// Ejection is that an endpoint of a pool gets nothing for a while.
type Ejection struct {
	Pool, Endpoint string
	Failure        Failure // the last one
	For            time.Duration
}

// Result is what an exchange showed of the endpoint that served it.
type Result struct {
	// Pool and Endpoint are what was decided, Served who answered by Envoy's
	// account, "" where it does not tell.
	Pool, Endpoint, Served string
	// Attempts is how often Envoy tried, 0 where it does not tell.
	Attempts int
	Failure  Failure
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
	// Who is told may take its time, and must not keep others waiting.
	for _, e := range r.done(&d, now) {
		r.ejected(e)
	}
}

// done is Done, but for telling of the ejections that it returns.
func (r *Router) done(d *Result, now time.Duration) (told []Ejection) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s := r.states[d.served()]; s != nil && s.member {
		s.mu.Lock()
		s.observed.Store(s.observed.Load().with(d, now))
		s.mu.Unlock()
	}
	p := r.table.Load().pools[d.Pool]
	if p == nil {
		return nil
	}
	m := p.members.Load()
	judge := func(one *member, f Failure, answered bool) {
		if e, ejected := r.judge(p, m, one, f, answered, now); ejected && r.ejected != nil {
			told = append(told, e)
		}
	}
	served, picked := m.find(d.served()), m.find(d.Endpoint)
	if served != nil {
		judge(served, d.Failure, d.Headers > 0)
	}
	// Envoy tried the pick in vain, or knows that it need not try. Where it went
	// to an address that is not of the pool, at its first try, that may be the
	// pick's own by another name.
	if picked != nil && picked != served && (served != nil || d.Attempts > 1) {
		judge(picked, FailedPassedOver, false)
	}
	return told
}

// judge notes how an exchange went at one of all, the members of p, and ejects it
// where that is due. answered tells that a response came.
func (r *Router) judge(p *pool, all *members, one *member, f Failure, answered bool, now time.Duration) (_ Ejection, ejected bool) {
	s, e := &one.state.standing, &p.rules.Eject
	one.state.mu.Lock()
	defer one.state.mu.Unlock()
	ejected = s.note(e, f == NoFailure && answered, f != NoFailure, now) && r.eject(s, e, all, now)
	return Ejection{Pool: p.name, Endpoint: one.addr, Failure: f, For: s.term}, ejected
}

// eject ejects s, unless too many of all are ejected already.
func (r *Router) eject(s *standing, e *Eject, all *members, now time.Duration) bool {
	r.ejecting.Lock()
	defer r.ejecting.Unlock()
	if !all.mayEject(e, now) {
		return false
	}
	s.eject(e, now)
	return true
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

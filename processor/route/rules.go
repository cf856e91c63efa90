package route

import (
	"fmt"
	"slices"
	"time"
)

// The policies.
const (
	// LeastLoad picks the endpoint of the least cost, and among equals the one
	// whose last turn is longest ago.
	LeastLoad = "least-load"
	// Prefix keeps requests with the same beginning together, as far as their
	// endpoint is not loaded beyond the others.
	Prefix = "prefix"
	// LoRA prefers endpoints that run the request's adapter, and then those that
	// have room for it.
	LoRA = "lora"
	// RoundRobin has the endpoints take turns, and Random draws one.
	RoundRobin = "round-robin"
	Random     = "random"
)

// Policies are the names of all policies.
func Policies() []string { return []string{LeastLoad, Prefix, LoRA, RoundRobin, Random} }

// Rules are how a pool's endpoints are picked. The zero value picks the least
// loaded of all of them, whatever their failures.
type Rules struct {
	// Policy is one of Policies; empty: LeastLoad.
	Policy string
	// Fallbacks is how many endpoints a Decision names for Envoy to try next, up
	// to MaxCandidates - 1.
	Fallbacks int
	// LoadBound is by what factor the load of an endpoint may exceed the mean of
	// its pool before the policies prefix and lora pass it over, at least 1; 0: 1.25.
	LoadBound float64
	// SlowStart is over how long an endpoint that came, or came back, gets its
	// share little by little; 0: at once.
	SlowStart time.Duration
	// PanicThreshold is the share of a pool's endpoints that must be fit, 0 to 1:
	// if fewer are, or none is, all are used.
	PanicThreshold float64
	Eject          Eject
}

// Eject says when an endpoint that fails gets nothing for a while.
type Eject struct {
	// Failures is how many in a row eject an endpoint; 0: none do.
	Failures int
	// Rate is which share of an endpoint's exchanges in rateWindow, at least
	// rateLeast of them, eject it when they fail; 0: none does.
	Rate float64
	// Base is how long an endpoint is ejected the first time. Each further time is
	// twice as long, up to Max; and once half as long for each time that it did
	// well for as long as it was ejected last.
	Base, Max time.Duration
	// Share of a pool's endpoints may be ejected at once, 0 to 1.
	Share float64
}

// maxEject is the longest that an endpoint can be ejected.
const maxEject = 24 * time.Hour

// on tells whether anything ejects an endpoint.
func (e *Eject) on() bool { return e.Failures > 0 || e.Rate > 0 }

// DefaultLoadBound is the load bound where none is set.
const DefaultLoadBound = 1.25

func (u Rules) withDefaults() Rules {
	if u.Policy == "" {
		u.Policy = LeastLoad
	}
	if u.LoadBound == 0 {
		u.LoadBound = DefaultLoadBound
	}
	return u
}

// check finds a rule that can't be followed; its error begins with the key.
func (u Rules) check() error {
	share := func(v float64) bool { return v >= 0 && v <= 1 }
	switch {
	case !slices.Contains(Policies(), u.Policy):
		return fmt.Errorf("policy: %q: want one of %q", u.Policy, Policies())
	case u.Fallbacks < 0 || u.Fallbacks >= MaxCandidates:
		return fmt.Errorf("fallbacks: %d: want 0 to %d", u.Fallbacks, MaxCandidates-1)
	case !(u.LoadBound >= 1):
		return fmt.Errorf("load bound: %v: want 1 or more", u.LoadBound)
	case u.SlowStart < 0:
		return fmt.Errorf("slow start: %v: want 0 or more", u.SlowStart)
	case !share(u.PanicThreshold):
		return fmt.Errorf("panic threshold: %v: want 0 to 1", u.PanicThreshold)
	case u.Eject.Failures < 0 || !share(u.Eject.Rate) || !share(u.Eject.Share):
		return fmt.Errorf("eject: %+v: want failures of 0 or more, and shares from 0 to 1", u.Eject)
	case u.Eject.on() && u.Eject.Base <= 0 || u.Eject.Max < u.Eject.Base || u.Eject.Max > maxEject:
		return fmt.Errorf("eject: %v at first and %v at most: want more than 0, and from the first to %v at most",
			u.Eject.Base, u.Eject.Max, maxEject)
	}
	return nil
}

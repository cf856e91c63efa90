package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Eject says when an endpoint that fails gets nothing for a while.
type Eject struct {
	// Failures in a row eject an endpoint; 0: none do.
	Failures int `yaml:"failures" min:"0" max:"1000"`
	// FailureShare of the exchanges of ten seconds does; 0: none does.
	FailureShare Share `yaml:"failure_share"`
	// Time is for how long, the first time, and MaxTime at most.
	Time    time.Duration `yaml:"time" min:"1s" max:"24h"`
	MaxTime time.Duration `yaml:"max_time" min:"1s" max:"24h"`
	// MaxShare of a pool's endpoints may be ejected at once.
	MaxShare Share `yaml:"max_share"`
}

// policyDefaults are the defaults of how a pool's endpoints are picked.
func (p *Pool) policyDefaults() {
	p.Policy, p.FallbackEndpoints, p.LoadBound = "least-load", 1, 1.25
	p.SlowStart, p.PanicThreshold = 10*time.Second, 0.2
	p.Eject = Eject{Failures: 5, FailureShare: 0.5, Time: 10 * time.Second, MaxTime: 5 * time.Minute, MaxShare: 0.5}
}

// Factor is by how much one thing may exceed another.
type Factor float64

const maxFactor = 100

func (f *Factor) parse(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 1 || v > maxFactor {
		return errors.New("which is no factor; allowed: a number from 1 to 100, such as 1.25")
	}
	*f = Factor(v)
	return nil
}

// policyWarnings says where a policy can't do what it is for.
func policyWarnings(pools []Pool) (out []string) {
	for i, p := range pools {
		if p.Policy == "lora" && !p.Scrape.Enabled {
			out = append(out, fmt.Sprintf("pools[%d].policy: is lora, but which adapters a server runs is in its metrics, which pools[%d].scrape.enabled leaves unread", i, i))
		}
	}
	return out
}

func (v *validator) eject(path string, e *Eject) {
	if e.MaxTime < e.Time {
		v.failf(path+".max_time", "is %s, which is less than %s.time, %s; allowed: as much or more", e.MaxTime, path, e.Time)
	}
}

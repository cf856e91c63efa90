package config

import (
	"slices"
	"strconv"
	"time"
)

// SLO is what exchanges promise: to stay within its thresholds.
type SLO struct {
	Name string `yaml:"name"`
	// Match says of which exchanges.
	Match SLOMatch `yaml:"match"`
	// TTFT, TPOT and Duration are the thresholds; 0: none.
	TTFT     time.Duration `yaml:"ttft" min:"0s"`
	TPOT     time.Duration `yaml:"tpot" min:"0s"`
	Duration time.Duration `yaml:"duration" min:"0s"`
	// Target is the part of them that is to keep the promise.
	Target Share `yaml:"target"`
}

func (s *SLO) setDefaults() { s.Target = 0.99 }

// SLOMatch says which exchanges an SLO covers: those with all that it names.
type SLOMatch struct {
	Operation string `yaml:"operation"`
	Model     string `yaml:"model"`
	Pool      string `yaml:"pool"`
}

// ownSLO is the SLO of requests that no other covers and whose clients want one;
// telemetry's.
const ownSLO = "request"

// maxSLOs bounds the series of inferspan.slo.requests.
const maxSLOs = 50

func (v *validator) slos(slos []SLO) {
	if len(slos) > maxSLOs {
		v.failf("slo", "has %d entries; allowed: %d at most", len(slos), maxSLOs)
	}
	first := map[string]int{}
	for i, s := range slos {
		path := "slo[" + strconv.Itoa(i) + "]"
		if !validPool(s.Name) {
			v.failf(path+".name", "%s; allowed: 1 to %d letters, digits, '.', '_' or '-'", nameProblem(s.Name), maxName)
		} else if j, twice := first[s.Name]; twice {
			v.failf(path+".name", "%q is the name of slo[%d] too; allowed: a name of its own", s.Name, j)
		} else {
			first[s.Name] = i
		}
		if s.Name == ownSLO {
			v.failf(path+".name", "%q stands for what a trusted client wants of its own request; allowed: another name", s.Name)
		}
		if s.TTFT == 0 && s.TPOT == 0 && s.Duration == 0 {
			v.failf(path, "has no threshold; allowed: one or more of ttft, tpot and duration")
		}
		if p := s.Match.Pool; p != "" && !slices.Contains(v.poolNames, p) {
			v.failf(path+".match.pool", "there is no pool %q%s; allowed: %s", p, nearest(p, v.poolNames), v.allowedPools())
		}
	}
}

package route

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecide holds what must hold of every decision, for any request that any
// client or Envoy can send.
func FuzzDecide(f *testing.F) {
	f.Add("/v1/chat/completions", "llama", true, true, true, a1, true, uint64(1), "", 0)
	f.Add("/", "", false, false, false, "", true, uint64(2), "", 0)
	f.Add("/", "x`\x00\xff\"<", true, true, true, "10.0.0.1:8001,169.254.169.254:80", true, uint64(3), "s", -1)
	f.Add("/v1/models", "", false, false, false, "", false, uint64(4), "", 1)
	f.Fuzz(func(t *testing.T, path, model string, hasModel, isJSON, hasBody bool, subset string, hasSubset bool, seed uint64, session string, priority int) {
		c := randomConfig(seed)
		r := mustNew(t, c)
		q := Request{Method: "GET", Path: path, Model: model, HasModel: hasModel, JSON: isJSON, HasBody: hasBody, HasSubset: hasSubset, Session: session, Priority: priority}
		if subset != "" {
			q.Subset = strings.Split(subset, ",")
		}
		for range 5 {
			d := r.Decide(q)
			checkDecision(t, c, q, d)
			if d.Endpoint != "" {
				r.Begin(Load{Endpoint: d.Endpoint})
			}
		}
	})
}

// TestDecideStaysInThePool is the same over random configurations and requests
// that mostly hit something.
func TestDecideStaysInThePool(t *testing.T) {
	for seed := range uint64(500) {
		c := randomConfig(seed)
		r := mustNew(t, c)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for range 50 {
			q := asks(rnd.IntN(3), rnd.IntN(9))
			q.Path, q.HasBody, q.HasModel, q.JSON = "/v1/completions", rnd.IntN(4) > 0, false, false
			if q.HasBody {
				q.JSON = rnd.IntN(4) > 0
				q.HasModel = rnd.IntN(4) > 0
				q.Model = fmt.Sprintf("%s%d", []string{"m", "a", "p", "pp/"}[rnd.IntN(4)], rnd.IntN(5))
				q.Priority = rnd.IntN(3) - 1
				q.Session = []string{"", "one", "another"}[rnd.IntN(3)]
			}
			if q.HasSubset = rnd.IntN(2) > 0; q.HasSubset {
				for range rnd.IntN(6) {
					q.Subset = append(q.Subset, randomEndpoint(rnd))
				}
			}
			d := r.Decide(q)
			checkDecision(t, c, q, d)
			if d.Endpoint != "" && rnd.IntN(2) > 0 {
				r.Begin(Load{Endpoint: d.Endpoint})
			}
		}
	}
}

func randomEndpoint(rnd *rand.Rand) string {
	return fmt.Sprintf("10.0.0.%d:%d", 1+rnd.IntN(6), 8000+rnd.IntN(2))
}

func randomConfig(seed uint64) Config {
	rnd := rand.New(rand.NewPCG(seed, 0))
	var c Config
	for _, name := range []string{"default", "a", "b"} {
		if rnd.IntN(4) == 0 {
			continue
		}
		p := Pool{Name: name, Rules: Rules{Policy: Policies()[rnd.IntN(len(Policies()))], Fallbacks: rnd.IntN(MaxCandidates)},
			Shed: Shed{Limits: Limits{InFlight: rnd.IntN(4)}, Hard: Limits{InFlight: rnd.IntN(6)}}}
		for range rnd.IntN(10) {
			if e := (Endpoint{Address: randomEndpoint(rnd)}); !slices.Contains(p.Endpoints, e) {
				p.Endpoints = append(p.Endpoints, e)
			}
		}
		c.Pools = append(c.Pools, p)
	}
	for i := range 4 {
		if len(c.Pools) == 0 {
			break
		}
		m := Model{Name: fmt.Sprintf("m%d", i), Targets: []Target{{Pool: c.Pools[0].Name, Weight: 1}}}
		for j := range rnd.IntN(3) {
			served := fmt.Sprintf("served%d", j)
			m.Targets = append(m.Targets, Target{Pool: c.Pools[rnd.IntN(len(c.Pools))].Name, Weight: rnd.IntN(5), Model: served})
		}
		if rnd.IntN(2) > 0 {
			m.Aliases = []string{fmt.Sprintf("a%d", i)}
		}
		if rnd.IntN(2) > 0 {
			m.Prefixes = []string{strings.Repeat("p", i+1)}
		}
		c.Models = append(c.Models, m)
	}
	return c
}

func checkDecision(t *testing.T, c Config, q Request, d Decision) {
	t.Helper()
	set := 0
	for _, is := range []bool{d.Endpoint != "", d.Answer != nil, d.Reject != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		t.Fatalf("Decide(%+v): endpoint %q, answer %+v and rejection %+v", q, d.Endpoint, d.Answer, d.Reject)
	}
	if d.Endpoint == "" {
		if len(d.Candidates) != 0 || d.Model != "" {
			t.Fatalf("Decide(%+v): our own answer with candidates %q and model %q", q, d.Candidates, d.Model)
		}
		if d.Reject != nil {
			checkRejection(t, d.Reject)
			checkShed(t, c, q, d)
		} else if !json.Valid(d.Answer.Body) || len(c.Models) == 0 {
			t.Fatalf("Decide(%+v): the answer %s", q, d.Answer.Body)
		}
		return
	}
	i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == d.Pool })
	if i < 0 {
		t.Fatalf("Decide(%+v): there is no pool %q", q, d.Pool)
	}
	if n := len(d.Candidates); n > MaxCandidates || d.Candidates[0] != d.Endpoint {
		t.Fatalf("Decide(%+v): endpoint %q, candidates %q", q, d.Endpoint, d.Candidates)
	}
	if n := len(d.Fallbacks); n != min(c.Pools[i].Rules.Fallbacks, len(d.Candidates)-1) || !slices.Equal(d.Fallbacks, d.Candidates[1:1+n]) {
		t.Fatalf("Decide(%+v): fallbacks %q of the candidates %q", q, d.Fallbacks, d.Candidates)
	}
	for j, e := range d.Candidates {
		switch {
		case !slices.Contains(c.Pools[i].Endpoints, Endpoint{Address: e}):
			t.Fatalf("Decide(%+v): %q is not in the pool %q", q, e, d.Pool)
		case q.HasSubset && !slices.ContainsFunc(q.Subset, func(s string) bool { c, err := canonical(s); return err == nil && c == e }):
			t.Fatalf("Decide(%+v): %q is not in the subset", q, e)
		case slices.Contains(d.Candidates[:j], e):
			t.Fatalf("Decide(%+v): %q is there twice", q, e)
		}
	}
	if d.Model != "" && (!q.JSON || !q.HasModel || d.Model == q.Model) {
		t.Fatalf("Decide(%+v): the model is rewritten to %q", q, d.Model)
	}
}

// checkShed holds that nobody is refused where no limit is set for it, and that
// who may come back is told when.
func checkShed(t *testing.T, c Config, q Request, d Decision) {
	t.Helper()
	again := d.Reject.Status == 429 || d.Reject.Status == 503
	if again != (d.Reject.RetryAfter >= 1 && d.Reject.RetryAfter <= 60) || !again && d.Reject.RetryAfter != 0 {
		t.Fatalf("Decide(%+v): %d with retry-after %d", q, d.Reject.Status, d.Reject.RetryAfter)
	}
	if (d.Reject.Status == 429) != (d.Reason == ReasonSaturated) {
		t.Fatalf("Decide(%+v): %d for %s", q, d.Reject.Status, d.Reason)
	}
	i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == d.Pool })
	if d.Reason == ReasonSaturated && c.Pools[i].Shed.Hard == (Limits{}) && (q.Priority >= 0 || c.Pools[i].Shed.Limits == (Limits{})) {
		t.Fatalf("Decide(%+v): refused by the pool %+v", q, c.Pools[i])
	}
}

func checkRejection(t *testing.T, r *Rejection) {
	t.Helper()
	var body struct {
		Error struct {
			Message string
			Type    string
			Param   *string
			Code    int
		}
	}
	b := r.Body()
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatalf("the body %q: %v", b, err)
	}
	e := body.Error
	if e.Message != r.Message || e.Type != r.Type || e.Code != r.Status || (e.Param == nil) != (r.Param == "") {
		t.Fatalf("the body %q does not say what %+v says", b, *r)
	}
	if len(e.Message) > maxNamed+100 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\r\n\x00\x1b") {
		t.Fatalf("the message %q is not fit to be shown", e.Message)
	}
}

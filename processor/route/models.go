package route

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// catalogue is the models that the configuration names, by what a request may
// call them.
type catalogue struct {
	entries  []*entry          // in the configuration's order
	exact    map[string]*entry // by their names and aliases
	prefixes []prefixed        // the longest first
	list     *Answer           // of all names
}

type prefixed struct {
	prefix string
	entry  *entry
}

// find returns the entry of a model name: the one that it names, else the one of
// the longest prefix; nil if there is none.
func (c *catalogue) find(name string) *entry {
	if e := c.exact[name]; e != nil {
		return e
	}
	for _, p := range c.prefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.entry
		}
	}
	return nil
}

// entry is a model's names and targets.
type entry struct {
	name    string
	aliases []string
	total   int64 // the sum of the weights

	mu      sync.Mutex
	targets []target
}

type target struct {
	pool   *pool
	model  string // what its servers know; empty: as asked, and the name for an alias
	weight int64
	seed   uint64 // of its scores
	credit int64  // guarded by entry.mu. Invariant: the credits sum to 0
}

// served is the name that t's servers are to see where a client asks for asked.
func (e *entry) served(t *target, asked string) string {
	switch {
	case t.model != "":
		return t.model
	case slices.Contains(e.aliases, asked):
		return e.name
	default:
		return asked
	}
}

// choose returns the target that takes the next request of session.
func (e *entry) choose(session string) *target {
	switch {
	case len(e.targets) == 1:
		return &e.targets[0]
	case session != "":
		return e.keep(session)
	default:
		return e.take()
	}
}

// keep returns the target of a session by weighted rendezvous: each target draws
// a number by its own name and the session's, and the largest of weight / -ln(draw)
// wins. So every replica agrees, a target has its weight's share of the sessions,
// and when a weight changes, sessions move to or from that target only.
func (e *entry) keep(session string) *target {
	h := hash(session)
	var best *target
	var high float64
	for i := range e.targets {
		t := &e.targets[i]
		if score := float64(t.weight) / -math.Log(unit(mix(h^t.seed))); score > high {
			best, high = t, score
		}
	}
	return best
}

// take returns the target whose turn it is. Over any sum-of-weights requests in a
// row each has exactly its weight's number of them, evenly spread: every turn adds
// the weights to the targets' credits, takes the largest credit, and charges it
// the sum.
func (e *entry) take() *target {
	e.mu.Lock()
	defer e.mu.Unlock()
	best := &e.targets[0]
	for i := range e.targets {
		t := &e.targets[i]
		t.credit += t.weight
		if t.credit > best.credit {
			best = t
		}
	}
	best.credit -= e.total
	return best
}

// hash is FNV-1a of parts, with a byte that no name has between them. Replicas
// of different versions have to agree on it.
func hash(parts ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, p := range parts {
		for _, b := range []byte(p) {
			h = (h ^ uint64(b)) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return h
}

// mix spreads each bit of h over all of them (the finalizer of splitmix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// newCatalogue checks models and makes them ready. Its errors begin with the
// key path of the fault, as in `models[0].targets[1].pool`.
func newCatalogue(models []Model, pools map[string]*pool) (catalogue, error) {
	c := catalogue{exact: make(map[string]*entry, len(models))}
	n := taken{what: "name", first: make(map[string]string)}
	prefixes := taken{what: "prefix", first: make(map[string]string)}
	for i, m := range models {
		e := &entry{name: m.Name, aliases: slices.Clone(m.Aliases)}
		if err := n.add(m.Name, "models[%d].name", i); err != nil {
			return c, err
		}
		c.exact[m.Name] = e
		for j, a := range m.Aliases {
			if err := n.add(a, "models[%d].aliases[%d]", i, j); err != nil {
				return c, err
			}
			c.exact[a] = e
		}
		for j, p := range m.Prefixes {
			if err := prefixes.add(p, "models[%d].prefixes[%d]", i, j); err != nil {
				return c, err
			}
			c.prefixes = append(c.prefixes, prefixed{p, e})
		}
		if err := e.setTargets(m.Targets, pools); err != nil {
			return c, fmt.Errorf("models[%d].%w", i, err)
		}
		c.entries = append(c.entries, e)
	}
	c.list = c.listing()
	slices.SortStableFunc(c.prefixes, func(a, b prefixed) int { return len(b.prefix) - len(a.prefix) })
	return c, nil
}

// taken are the names that entries have, each with the path of its first place.
type taken struct {
	what  string
	first map[string]string
}

func (n *taken) add(name, path string, at ...any) error {
	path = fmt.Sprintf(path, at...)
	if !validModelName(name) {
		return fmt.Errorf("%s: %q: want printable text", path, name)
	}
	if first, twice := n.first[name]; twice {
		return fmt.Errorf("%s: %q is %s too: want each %s once", path, name, first, n.what)
	}
	n.first[name] = path
	return nil
}

func (e *entry) setTargets(targets []Target, pools map[string]*pool) error {
	if len(targets) == 0 {
		return errors.New("targets: want at least one")
	}
	for i, t := range targets {
		p := pools[t.Pool]
		switch {
		case p == nil:
			return fmt.Errorf("targets[%d].pool: there is no pool %q, the pools are %q", i, t.Pool, names(pools))
		case t.Weight < 0 || t.Weight > MaxWeight:
			return fmt.Errorf("targets[%d].weight: %d: want 0 to %d", i, t.Weight, MaxWeight)
		case t.Model != "" && !validModelName(t.Model):
			return fmt.Errorf("targets[%d].model: %q: want printable text", i, t.Model)
		}
		// Two with one name would draw the same numbers.
		if j := slices.IndexFunc(targets[:i], func(u Target) bool { return u.Pool == t.Pool && u.Model == t.Model }); j >= 0 {
			return fmt.Errorf("targets[%d]: has the pool and the model of targets[%d]: want one with the sum of the weights", i, j)
		}
		e.targets = append(e.targets, target{
			pool: p, model: t.Model, weight: int64(t.Weight), seed: hash(e.name, t.Pool, t.Model),
		})
		e.total += int64(t.Weight)
	}
	if e.total == 0 {
		return errors.New("targets: every weight is 0, want one above it")
	}
	return nil
}

// resolve finds the pool of q and the model name that its servers know, empty
// for the one asked. Without a pool, reason is that of the rejection.
func (r *Router) resolve(q Request) (p *pool, model, reason string) {
	t := r.table.Load()
	// An empty name is none, as it is for vLLM.
	named := q.HasModel && q.Model != ""
	if named {
		if e := t.models.find(q.Model); e != nil {
			target := e.choose(q.Session)
			return target.pool, e.served(target, q.Model), ReasonModel
		}
	}
	p = t.pools[DefaultPool]
	switch {
	case p == nil && named:
		return nil, "", ReasonUnknownModel
	case p == nil:
		return nil, "", ReasonNoModel
	case named:
		return p, q.Model, ReasonDefault
	default:
		return p, q.Model, ReasonUnnamed
	}
}

package route

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Config is what a Router routes by.
type Config struct {
	Pools  []Pool
	Models []Model

	// Now is the clock, nil: time.Now; Random gives random numbers to many at
	// once, nil: those of math/rand/v2. New takes them, Apply does not.
	Now    func() time.Time
	Random func() uint64
	// Ejected is told of endpoints that fail too often, nil: nobody is. The
	// exchange that showed it waits for it. New takes it, Apply does not.
	Ejected func(Ejection)
}

// Pool is a set of interchangeable model servers. It may be empty: requests
// for it are answered with 503.
type Pool struct {
	// Name is made of letters, digits, '.', '_' and '-', since it goes out in
	// headers and labels.
	Name string
	// Endpoints have each address once.
	Endpoints []Endpoint
	// Source says what discovers the pool's endpoints; empty: nothing does, and
	// they are Endpoints. Discovered ones come by Router.SetEndpoints; until then
	// the pool has those that it had before, or where it is new, Endpoints.
	Source string
	Rules  Rules
	Shed   Shed
}

// Endpoint is one model server of a pool.
type Endpoint struct {
	Address string // ip:port
	// Weight is how much it can take compared with the others; 0 is 1.
	Weight int
}

// Model says which targets serve a model, and by which names it is asked for:
// its own, its aliases, and those that no entry has and that begin with one of
// its prefixes. Of several prefixes that fit the longest counts. No two entries
// share a name, nor a prefix.
type Model struct {
	Name     string
	Aliases  []string
	Prefixes []string
	// Targets are told apart by their pool and model.
	Targets []Target
}

// Target is one of the places that serve a model.
type Target struct {
	Pool string
	// Model is the name that the pool's servers know; empty: the entry's own, or
	// as asked where a prefix fits.
	Model string
	// Weight is the target's share of the sum over the model's targets, from 0
	// (takes nothing) to MaxWeight.
	Weight int
}

// MaxWeight is the largest weight of a target or an endpoint.
const MaxWeight = 1_000_000

// table is a Config, checked and made ready to be read by many at once.
type table struct {
	pools  map[string]*pool
	models catalogue
	// byPrefix: some pool picks by the prompt's prefix.
	byPrefix bool
}

// compile checks c and makes it ready, but for the states of the endpoints.
func compile(c Config) (*table, error) {
	t := &table{pools: make(map[string]*pool, len(c.Pools))}
	for i, p := range c.Pools {
		if !validPoolName(p.Name) {
			return nil, fmt.Errorf("pools[%d].name: %q: want 1 to %d letters, digits, '.', '_' or '-'", i, p.Name, maxNamed)
		}
		if t.pools[p.Name] != nil {
			return nil, fmt.Errorf("pools[%d].name: %q is the name of an earlier pool", i, p.Name)
		}
		list, err := distinct(p.Endpoints)
		if err != nil {
			return nil, fmt.Errorf("pools[%d].%w", i, err)
		}
		made := newPool(p.Name, p.Source, list)
		made.rules = p.Rules.withDefaults()
		if err := made.rules.check(); err != nil {
			return nil, fmt.Errorf("pools[%d]: %w", i, err)
		}
		made.door.shed = p.Shed
		if err := p.Shed.check(); err != nil {
			return nil, fmt.Errorf("pools[%d].%w", i, err)
		}
		t.byPrefix = t.byPrefix || made.rules.Policy == Prefix
		t.pools[p.Name] = made
	}
	var err error
	if t.models, err = newCatalogue(c.Models, t.pools); err != nil {
		return nil, err
	}
	return t, nil
}

// distinct returns endpoints as checked does, and refuses to have one twice.
func distinct(endpoints []Endpoint) ([]Endpoint, error) {
	out, err := checked(endpoints)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(out))
	for i, e := range out {
		if seen[e.Address] {
			return nil, fmt.Errorf("endpoints[%d]: %q is there twice", i, endpoints[i].Address)
		}
		seen[e.Address] = true
	}
	return out, nil
}

// checked returns endpoints in canonical spelling, so that one server is always
// one string, and with their weights said.
func checked(endpoints []Endpoint) ([]Endpoint, error) {
	out := make([]Endpoint, 0, len(endpoints))
	for i, e := range endpoints {
		addr, err := canonical(e.Address)
		if err != nil {
			return nil, fmt.Errorf("endpoints[%d]: %q: want ip:port, such as 10.0.0.7:8000 or [fd00::7]:8000", i, e.Address)
		}
		if e.Weight < 0 || e.Weight > MaxWeight {
			return nil, fmt.Errorf("endpoints[%d]: the weight of %q is %d: want 0 to %d", i, e.Address, e.Weight, MaxWeight)
		}
		out = append(out, Endpoint{Address: addr, Weight: max(1, e.Weight)})
	}
	return out, nil
}

func canonical(endpoint string) (string, error) {
	ap, err := netip.ParseAddrPort(endpoint)
	if err != nil {
		return "", fmt.Errorf("parse an endpoint: %w", err)
	}
	if ap.Port() == 0 {
		return "", fmt.Errorf("parse an endpoint: port 0 of %q", endpoint)
	}
	return ap.String(), nil
}

func names(pools map[string]*pool) []string {
	out := make([]string, 0, len(pools))
	for name := range pools {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func validPoolName(s string) bool {
	if s == "" || len(s) > maxNamed {
		return false
	}
	for _, c := range []byte(s) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

func validModelName(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

package config

import (
	"fmt"
	"strconv"
)

// Endpoint is one model server of a pool. In the file its address alone may
// stand for it.
type Endpoint struct {
	Address Address `yaml:"address"`
	// Weight is how much it can take compared with the others of its pool.
	Weight int `yaml:"weight" min:"1" max:"1000000"`
}

func (e *Endpoint) setDefaults() { e.Weight = 1 }

func (e *Endpoint) short() any { return &e.Address }

// endpoints finds what is missing and what is there twice of a list that is the
// key name below path.
func (v *validator) endpoints(path, name string, endpoints []Endpoint) {
	first := map[Address]int{}
	for i, e := range endpoints {
		at := join(path, name+"["+strconv.Itoa(i)+"]")
		if e.Address == "" {
			// Where it was there and no address, that was reported already.
			v.failf(at+".address", "is missing; %s", wantEndpoint)
			continue
		}
		if j, twice := first[e.Address]; twice {
			v.failf(at, "%q is %s[%d] too; allowed: each endpoint of a pool once", string(e.Address), name, j)
			continue
		}
		first[e.Address] = i
	}
}

// ParseEndpoints reads a file that holds the endpoints of one pool: a list in
// the form of the key endpoints. name stands for the file in errors.
func ParseEndpoints(name string, data []byte) ([]Endpoint, error) {
	var list []Endpoint
	d := decoder{lines: map[string]int{}}
	if d.document(data, &list) {
		if list == nil && len(d.faults) == 0 {
			// Half a file, more likely than a pool that is meant to be empty.
			return nil, fmt.Errorf("%s: is empty; allowed: a list, [] for an empty one", name)
		}
		var v validator
		v.endpoints("", "", list)
		d.faults = append(d.faults, besides(d.faults, v.faults)...)
	}
	if len(d.faults) > 0 {
		return nil, newError(name, d.faults, d.lines)
	}
	return list, nil
}

package route

import (
	"math"
	"strings"
	"testing"
)

func TestNewNamesTheFault(t *testing.T) {
	f := func(c Config, want string) {
		t.Helper()
		_, err := New(c)
		if err == nil || err.Error() != want {
			t.Errorf("New: got error %v, want %s", err, want)
		}
	}
	pool := func(name string, endpoints ...string) Pool { return Pool{Name: name, Endpoints: at(endpoints...)} }
	f(Config{Pools: []Pool{pool("")}}, `pools[0].name: "": want 1 to 128 letters, digits, '.', '_' or '-'`)
	f(Config{Pools: []Pool{pool("a\r\nb")}}, `pools[0].name: "a\r\nb": want 1 to 128 letters, digits, '.', '_' or '-'`)
	f(Config{Pools: []Pool{pool("a"), pool("a")}}, `pools[1].name: "a" is the name of an earlier pool`)
	for _, e := range []string{"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "host:80", "[::1]", "1.2.3.4:80,5.6.7.8:80", " 1.2.3.4:80"} {
		_, err := New(Config{Pools: []Pool{pool("a", "10.0.0.1:8000", e)}})
		if err == nil || !strings.HasPrefix(err.Error(), "pools[0].endpoints[1]: ") {
			t.Errorf("New with the endpoint %q: got error %v, want one at pools[0].endpoints[1]", e, err)
		}
	}
	f(Config{Pools: []Pool{pool("a", "[::1]:80", "[0:0::1]:80")}}, `pools[0].endpoints[1]: "[0:0::1]:80" is there twice`)

	for _, s := range []Shed{
		{Limits: Limits{InFlight: -1}}, {Limits: Limits{Queue: -1}}, {Hard: Limits{KVUsage: 1.01}}, {Hard: Limits{KVUsage: math.NaN()}},
	} {
		_, err := New(Config{Pools: []Pool{{Name: "a", Shed: s}}})
		if err == nil || !strings.HasPrefix(err.Error(), "pools[0].shed: ") || !strings.HasSuffix(err.Error(), ": want limits from 0, and the cache's to 1") {
			t.Errorf("New with %+v: got error %v, want one at pools[0].shed", s, err)
		}
	}

	models := func(m ...Model) Config { return Config{Pools: []Pool{pool("b"), pool("a")}, Models: m} }
	target := Target{Pool: "a", Weight: 1}
	f(models(Model{Targets: []Target{target}}), `models[0].name: "": want printable text`)
	f(models(Model{Name: "x", Targets: []Target{target}}, Model{Name: "x", Targets: []Target{target}}), `models[1].name: "x" is models[0].name too: want each name once`)
	f(models(Model{Name: "x"}), `models[0].targets: want at least one`)
	f(models(Model{Name: "x", Targets: []Target{target, {Pool: "c", Weight: 1}}}), `models[0].targets[1].pool: there is no pool "c", the pools are ["a" "b"]`)
	f(models(Model{Name: "x", Targets: []Target{{Pool: "a"}, {Pool: "b"}}}), `models[0].targets: every weight is 0, want one above it`)
	f(models(Model{Name: "x", Targets: []Target{{Pool: "a", Weight: -1}}}), `models[0].targets[0].weight: -1: want 0 to 1000000`)
	f(models(Model{Name: "x", Targets: []Target{{Pool: "a", Weight: 1_000_001}}}), `models[0].targets[0].weight: 1000001: want 0 to 1000000`)
	f(models(Model{Name: "x", Targets: []Target{{Pool: "a", Weight: 1, Model: "y\n"}}}), `models[0].targets[0].model: "y\n": want printable text`)
}

func TestNew_Rules(t *testing.T) {
	f := func(u Rules, want string) {
		t.Helper()
		_, err := New(onePool(u, a1))
		if err == nil || err.Error() != want {
			t.Errorf("New: got error %v, want %s", err, want)
		}
	}
	f(Rules{Policy: "best"}, `pools[0]: policy: "best": want one of ["least-load" "prefix" "lora" "round-robin" "random"]`)
	f(Rules{Fallbacks: 8}, `pools[0]: fallbacks: 8: want 0 to 7`)
	f(Rules{Fallbacks: -1}, `pools[0]: fallbacks: -1: want 0 to 7`)
	f(Rules{LoadBound: 0.9}, `pools[0]: load bound: 0.9: want 1 or more`)
	f(Rules{LoadBound: math.NaN()}, `pools[0]: load bound: NaN: want 1 or more`)
	f(Rules{SlowStart: -1}, `pools[0]: slow start: -1ns: want 0 or more`)
	f(Rules{PanicThreshold: 1.1}, `pools[0]: panic threshold: 1.1: want 0 to 1`)
	f(Rules{Eject: Eject{Rate: 2, Base: 1, Max: 1}}, `pools[0]: eject: {Failures:0 Rate:2 Base:1ns Max:1ns Share:0}: want failures of 0 or more, and shares from 0 to 1`)
	f(Rules{Eject: Eject{Failures: 5}}, `pools[0]: eject: 0s at first and 0s at most: want more than 0, and from the first to 24h0m0s at most`)
	f(Rules{Eject: Eject{Rate: 1, Base: 2, Max: 1}}, `pools[0]: eject: 2ns at first and 1ns at most: want more than 0, and from the first to 24h0m0s at most`)
}

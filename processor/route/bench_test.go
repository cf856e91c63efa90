package route

import (
	"fmt"
	"testing"
)

func benchmarkDecide(b *testing.B, endpoints int, parallel bool) {
	b.Helper()
	p := Pool{Name: "default"}
	for i := range endpoints {
		p.Endpoints = append(p.Endpoints, Endpoint{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, 1+i%250)})
	}
	r := mustNew(b, Config{Pools: []Pool{p}})
	q := chat("m")
	b.ReportAllocs()
	round := func() {
		d := r.Decide(q)
		r.Begin(Load{Endpoint: d.Endpoint})
		r.End(Load{Endpoint: d.Endpoint})
	}
	if !parallel {
		for b.Loop() {
			round()
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			round()
		}
	})
}

// BenchmarkDecide1000Shedding is the dearest: every endpoint is at the limit that
// does not concern the request.
func BenchmarkDecide1000Shedding(b *testing.B) {
	p := Pool{Name: "default", Shed: Shed{Limits: Limits{InFlight: 1}, Hard: Limits{InFlight: 1_000_000}}}
	for i := range 1000 {
		p.Endpoints = append(p.Endpoints, Endpoint{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, 1+i%250)})
	}
	r := mustNew(b, Config{Pools: []Pool{p}})
	for _, e := range p.Endpoints {
		r.Begin(Load{Endpoint: e.Address})
	}
	q := chat("m")
	b.ReportAllocs()
	for b.Loop() {
		if r.Decide(q).Endpoint == "" {
			b.Fatal("it is refused")
		}
	}
}

func BenchmarkDecide2(b *testing.B)            { benchmarkDecide(b, 2, false) }
func BenchmarkDecide1000(b *testing.B)         { benchmarkDecide(b, 1000, false) }
func BenchmarkDecide2Parallel(b *testing.B)    { benchmarkDecide(b, 2, true) }
func BenchmarkDecide1000Parallel(b *testing.B) { benchmarkDecide(b, 1000, true) }

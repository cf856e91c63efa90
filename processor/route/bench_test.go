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

func BenchmarkDecide2(b *testing.B)            { benchmarkDecide(b, 2, false) }
func BenchmarkDecide1000(b *testing.B)         { benchmarkDecide(b, 1000, false) }
func BenchmarkDecide2Parallel(b *testing.B)    { benchmarkDecide(b, 2, true) }
func BenchmarkDecide1000Parallel(b *testing.B) { benchmarkDecide(b, 1000, true) }

package route

import (
	"math/rand/v2"
	"testing"
	"time"
)

// benchmarkPolicy decides among 1,000 endpoints that all say something of
// themselves and show how fast they are.
func benchmarkPolicy(b *testing.B, u Rules) {
	b.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	addrs := many(1000)
	r := mustNew(b, onePool(u, addrs...))
	for i, a := range addrs {
		r.SetSignals(a, Signals{
			Interval: time.Hour, Running: Some(float64(rnd.IntN(20))), Waiting: Some(float64(rnd.IntN(3))),
			KVUsage: Some(rnd.Float64()), MaxLoRA: Some(4), RunningLoRA: []string{"a", "b", many(1000)[i]},
		})
		r.Done(Result{Pool: "default", Endpoint: a, Headers: time.Millisecond, TPOT: time.Duration(10+rnd.IntN(20)) * time.Millisecond})
		r.Begin(Load{Endpoint: a, Tokens: rnd.IntN(4096)})
	}
	q := asks(1, 8)
	b.ReportAllocs()
	for b.Loop() {
		d := r.Decide(q)
		l := Load{Endpoint: d.Endpoint, Tokens: d.Tokens}
		r.Begin(l)
		r.End(l)
	}
}

func BenchmarkLeastLoad1000(b *testing.B)  { benchmarkPolicy(b, Rules{}) }
func BenchmarkPrefix1000(b *testing.B)     { benchmarkPolicy(b, Rules{Policy: Prefix}) }
func BenchmarkLoRA1000(b *testing.B)       { benchmarkPolicy(b, Rules{Policy: LoRA}) }
func BenchmarkRoundRobin1000(b *testing.B) { benchmarkPolicy(b, Rules{Policy: RoundRobin}) }
func BenchmarkRandom1000(b *testing.B)     { benchmarkPolicy(b, Rules{Policy: Random}) }

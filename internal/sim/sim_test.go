package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor/route"
)

const streams = "../testkit/testdata/streams"

func mustLaw(t *testing.T) law {
	t.Helper()
	l, err := readLaw(streams)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The law is the recordings': a server that follows it takes as long as the real
// one did, for the prompt that was recorded with and without the cache.
func TestLawGivesWhatWasRecorded(t *testing.T) {
	l := mustLaw(t)
	for _, name := range []string{uncached, cached} {
		r, err := measured(streams + "/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		read := r.PromptTokens.V - r.CachedTokens.V
		got := l.front + median(l.gaps) + time.Duration(read)*l.prefill
		if d := (got - r.FirstToken.V).Abs(); d > time.Microsecond*time.Duration(read) {
			t.Errorf("%s: the law gives a first token after %v, recorded is %v", name, got, r.FirstToken.V)
		}
	}
	// Two recordings of one and three sequences made the slope; that of two was
	// not asked.
	r, err := measured(streams + "/" + batches[2] + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	one, err := measured(streams + "/" + batches[1] + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := median(gapsOf(one))+l.sequence, median(gapsOf(r)); (got - want).Abs() > want/20 {
		t.Errorf("two sequences: the law gives %v for a step, recorded is %v", got, want)
	}
}

func TestReadLawWithoutRecordings(t *testing.T) {
	if _, err := readLaw(t.TempDir()); err == nil {
		t.Error("no error")
	}
}

// The least that the policies are worth in this fleet, and that docs state: with
// any number of replicas the slowest of a hundred first tokens comes in 0.6 of
// round-robin's time, and no server has more than twice what an equal share of
// the fullest moment is.
func TestPoliciesAreWorthTheirWhile(t *testing.T) {
	l := mustLaw(t)
	for _, replicas := range []int{1, 2, 4} {
		s := scenario{replicas: replicas, rate: defaultRate, duration: 5 * time.Minute, seed: 1}
		run := func(policy string) outcome {
			s.policy = policy
			o, err := simulate(l, s)
			if err != nil {
				t.Fatal(err)
			}
			if o.requests < 1000 || len(o.ttft)+o.failed+o.most < o.requests {
				t.Fatalf("%s: %d requests, %d answered, %d failed", policy, o.requests, len(o.ttft), o.failed)
			}
			return o
		}
		base := run("round-robin")
		cachedShare := map[string]float64{}
		for _, policy := range []string{"least-load", "prefix"} {
			o := run(policy)
			if got, limit := quantile(o.ttft, .99), quantile(base.ttft, .99)*6/10; got > limit {
				t.Errorf("%d replicas, %s: TTFT p99 %v, want %v at most", replicas, policy, got, limit)
			}
			if limit := 2 * (o.most/(servers-1) + 1); o.crowded > limit {
				t.Errorf("%d replicas, %s: %d requests at one server of %d at all, want %d at most", replicas, policy, o.crowded, o.most, limit)
			}
			if o.failed > 5*replicas {
				t.Errorf("%d replicas, %s: %d failed: the dead server was not left alone", replicas, policy, o.failed)
			}
			cachedShare[policy] = float64(o.cached) / float64(o.prompt)
		}
		if cachedShare["prefix"] < cachedShare["least-load"]+.1 {
			t.Errorf("%d replicas: prefix finds %.2f in caches, least-load %.2f", replicas, cachedShare["prefix"], cachedShare["least-load"])
		}
	}
}

func TestSameSeedSameOutcome(t *testing.T) {
	l := mustLaw(t)
	s := scenario{policy: "prefix", replicas: 2, rate: defaultRate, duration: 20 * time.Second, seed: 7}
	var ttft [2][]time.Duration
	for i := range ttft {
		o, err := simulate(l, s)
		if err != nil {
			t.Fatal(err)
		}
		ttft[i] = o.ttft
	}
	if len(ttft[0]) == 0 || !slices.Equal(ttft[0], ttft[1]) {
		t.Error("the same seed gave two outcomes")
	}
	s.seed++
	o, err := simulate(l, s)
	if err != nil || slices.Equal(o.ttft, ttft[0]) {
		t.Errorf("another seed gave the same outcome (%v)", err)
	}
}

// engine is a server whose steps take 10 ms, and 1 ms for each token of a prompt.
func engine() (*clock, *server) {
	c := &clock{}
	return c, &server{
		clock: c, slow: 1, rnd: rand.New(rand.NewPCG(1, 1)),
		law: law{gaps: []time.Duration{10 * time.Millisecond}, sequence: time.Millisecond, prefill: time.Millisecond},
	}
}

// watched is a call that notes when what happened.
func watched(c *clock, tokens, output int, blocks ...uint64) (*call, map[string]time.Duration) {
	seen := map[string]time.Duration{}
	note := func(what string) func() { return func() { seen[what] = c.now } }
	return &call{prompt: blocks, tokens: tokens, output: output, first: note("first"), done: note("done"), failed: note("failed")}, seen
}

func TestServer(t *testing.T) {
	c, s := engine()
	k, seen := watched(c, 32, 3, 1, 2)
	s.take(k)
	c.run(time.Second)
	if seen["first"] != 42*time.Millisecond || seen["done"] != 62*time.Millisecond {
		t.Errorf("the first: %v, want 42 ms and 62 ms", seen)
	}
	// The same prompt comes from the cache, but for its last token.
	k, seen = watched(c, 32, 1, 1, 2)
	s.take(k)
	c.run(2 * time.Second)
	if seen["first"] != time.Second+11*time.Millisecond || k.cached != 31 {
		t.Errorf("the second: %v with %d cached, want 1.011 s with 31", seen, k.cached)
	}
	// Two at once share a step; a prompt longer than a step takes several.
	long, seenLong := watched(c, stepTokens+100, 1)
	short, seenShort := watched(c, 1, 1)
	s.take(long)
	s.take(short)
	c.run(10 * time.Second)
	if seenLong["first"] <= seenShort["first"]-2*time.Second || seenShort["first"] == 0 {
		t.Errorf("long %v, short %v", seenLong, seenShort)
	}
	k, seen = watched(c, 10, 100)
	s.take(k)
	c.after(100*time.Millisecond, s.die)
	c.run(20 * time.Second)
	if seen["failed"] != 10*time.Second+100*time.Millisecond || seen["done"] != 0 || s.take(k) {
		t.Errorf("died: %v", seen)
	}
}

func TestCacheLetsTheOldestGo(t *testing.T) {
	var b blockCache
	b.add([]uint64{1, 2, 3})
	b.match([]uint64{1})
	b.shrink(1)
	if b.match([]uint64{1}) != 1 || b.match([]uint64{2}) != 0 {
		t.Error("the block that was used last is not the one that is left")
	}
	b.shrink(-1)
	if b.match([]uint64{1}) != 0 {
		t.Error("a block is left where there is no room")
	}
}

func TestRun(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{"--recordings", streams, "--duration", "5s"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, p := range policies {
		if n := strings.Count(out.String(), p+" "); n < 3 {
			t.Errorf("%s has %d lines, want one for each number of replicas:\n%s", p, n, out.String())
		}
	}
	for _, args := range [][]string{{"--rate", "0"}, {"more"}, {"--nonsense"}} {
		if code := run(args, &out, &errs); code != 2 {
			t.Errorf("%q: exit %d, want 2", args, code)
		}
	}
	if code := run([]string{"--recordings", t.TempDir()}, &out, &errs); code != 1 {
		t.Errorf("without recordings: exit %d, want 1", code)
	}
}

// What is simulated is what a configuration gets that names a policy and no more.
func TestRulesAreTheDefaults(t *testing.T) {
	c, err := config.Parse("defaults", []byte("pools: [{name: default, endpoints: [10.0.0.1:8000], policy: prefix}]"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Pools[0]
	want := route.Rules{
		Policy: p.Policy, Fallbacks: p.FallbackEndpoints - 1, LoadBound: float64(p.LoadBound), SlowStart: p.SlowStart,
		PanicThreshold: float64(p.PanicThreshold),
		Eject: route.Eject{
			Failures: p.Eject.Failures, Rate: float64(p.Eject.FailureShare),
			Base: p.Eject.Time, Max: p.Eject.MaxTime, Share: float64(p.Eject.MaxShare),
		},
	}
	if got := rules("prefix"); got != want {
		t.Errorf("simulated is %+v, the defaults are %+v", got, want)
	}
}

package route

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
)

func TestDecideFindsTheEntry(t *testing.T) {
	to := func(pool, model string) []Target { return []Target{{Pool: pool, Model: model, Weight: 1}} }
	r := mustNew(t, Config{
		Pools: []Pool{
			{Name: "default", Endpoints: at(a1)}, {Name: "a", Endpoints: at(a1)},
			{Name: "b", Endpoints: at(a1)}, {Name: "c", Endpoints: at(a1)},
		},
		Models: []Model{
			{Name: "llama", Aliases: []string{"gpt-4", "llama-latest"}, Prefixes: []string{"llama-"}, Targets: to("a", "")},
			{Name: "llama-3", Prefixes: []string{"llama-3", "org/"}, Targets: to("b", "served")},
			{Name: "org/x", Aliases: []string{"x"}, Targets: to("c", "served-x")},
		},
	})
	// want: pool, the name that the server sees where it is not the one asked, reason
	f := func(asked, want string) {
		t.Helper()
		d := r.Decide(chat(asked))
		if got := d.Pool + " " + d.Model + " " + d.Reason; got != want {
			t.Errorf("Decide for %q: got %q, want %q", asked, got, want)
		}
	}
	f("llama", "a  model")
	f("gpt-4", "a llama model")        // an alias means the entry
	f("llama-latest", "a llama model") // before a prefix that fits too
	f("llama-2", "a  model")           // a prefix leaves the name as it was asked
	f("llama-", "a  model")
	f("llama-3", "b served model")
	f("llama-3/8b", "b served model") // the longest prefix, wherever it stands
	f("org/x", "c served-x model")    // an entry's own name before another's prefix
	f("org/y", "b served model")
	f("x", "c served-x model")
	f("Llama", "default  default")
	f("xlama-3", "default  default")
}

func TestNewNamesTheNamesFault(t *testing.T) {
	f := func(want string, models ...Model) {
		t.Helper()
		for i := range models {
			models[i].Targets = []Target{{Pool: "a", Weight: 1}}
		}
		_, err := New(Config{Pools: []Pool{{Name: "a"}}, Models: models})
		if err == nil || err.Error() != want {
			t.Errorf("New: got error %v, want %s", err, want)
		}
	}
	f(`models[0].aliases[0]: "": want printable text`, Model{Name: "x", Aliases: []string{""}})
	f(`models[0].prefixes[0]: "": want printable text`, Model{Name: "x", Prefixes: []string{""}})
	f(`models[0].aliases[0]: "x" is models[0].name too: want each name once`, Model{Name: "x", Aliases: []string{"x"}})
	f(`models[1].name: "b" is models[0].aliases[1] too: want each name once`,
		Model{Name: "x", Aliases: []string{"a", "b"}}, Model{Name: "b"})
	f(`models[1].aliases[0]: "a" is models[0].aliases[0] too: want each name once`,
		Model{Name: "x", Aliases: []string{"a"}}, Model{Name: "y", Aliases: []string{"a"}})
	f(`models[1].prefixes[1]: "p" is models[0].prefixes[0] too: want each prefix once`,
		Model{Name: "x", Prefixes: []string{"p"}}, Model{Name: "y", Prefixes: []string{"q", "p"}})

	_, err := New(Config{Pools: []Pool{{Name: "a"}}, Models: []Model{{Name: "x", Targets: []Target{
		{Pool: "a", Weight: 1}, {Pool: "a", Model: "y", Weight: 1}, {Pool: "a", Weight: 2},
	}}}})
	if want := `models[0].targets[2]: has the pool and the model of targets[0]: want one with the sum of the weights`; err == nil || err.Error() != want {
		t.Errorf("New: got error %v, want %s", err, want)
	}
}

// sticky returns a router whose model m goes to the pools p0, p1, … by weights.
func sticky(t *testing.T, weights ...int) *Router {
	t.Helper()
	var c Config
	m := Model{Name: "m", Aliases: []string{"alias"}}
	for i, w := range weights {
		name := "p" + strconv.Itoa(i)
		c.Pools = append(c.Pools, Pool{Name: name, Endpoints: at(a1)})
		m.Targets = append(m.Targets, Target{Pool: name, Weight: w})
	}
	c.Models = []Model{m}
	return mustNew(t, c)
}

const sessions = 20_000

// targetsOf returns where the sessions go.
func targetsOf(r *Router) []string {
	out := make([]string, sessions)
	for i := range out {
		q := chat("m")
		q.Session = fmt.Sprintf("session-%d", i)
		out[i] = r.Decide(q).Pool
	}
	return out
}

// A conversation keeps its target, on every replica, by whatever name the model
// is asked for, and whatever else is asked in between.
func TestSessionsStay(t *testing.T) {
	one, another := sticky(t, 90, 10), sticky(t, 90, 10)
	want := targetsOf(one)
	for range 7 {
		another.Decide(chat("m"))
	}
	if got := targetsOf(another); !slices.Equal(got, want) {
		t.Error("two replicas disagree")
	}
	for i := range 100 {
		q := chat("alias")
		q.Session = fmt.Sprintf("session-%d", i)
		if got := one.Decide(q).Pool; got != want[i] {
			t.Errorf("session %d asks for the alias: got %s, want %s", i, got, want[i])
		}
	}
}

// The targets of some sessions, as they have to stay from version to version:
// during a rollout both decide.
func TestSessionsStayOverVersions(t *testing.T) {
	r := sticky(t, 2, 1, 1)
	got := ""
	for i := range 16 {
		q := chat("m")
		q.Session = fmt.Sprintf("session-%d", i)
		got += r.Decide(q).Pool[1:]
	}
	if want := "0002200120000022"; got != want {
		t.Errorf("got the targets %s, want %s", got, want)
	}
}

func TestSessionsKeepTheWeights(t *testing.T) {
	f := func(weights ...int) {
		t.Helper()
		got := map[string]int{}
		for _, pool := range targetsOf(sticky(t, weights...)) {
			got[pool]++
		}
		total := 0
		for _, w := range weights {
			total += w
		}
		for i, w := range weights {
			want := sessions * w / total
			// Five standard deviations of a fair draw are 354 at most.
			if n := got["p"+strconv.Itoa(i)]; n < want-354 || n > want+354 || w == 0 && n > 0 {
				t.Errorf("weights %v: the targets have %v sessions", weights, got)
			}
		}
	}
	f(1, 1)
	f(90, 10)
	f(5, 3, 2)
	f(0, 7, 0, 13)
	f(1, 1_000_000)
}

// A weight that changes moves no more sessions than it has to, and none between
// targets whose weights stay.
func TestSessionsMoveWithTheWeightOnly(t *testing.T) {
	f := func(before, after []int, want map[string]float64) {
		t.Helper()
		from, to := targetsOf(sticky(t, before...)), targetsOf(sticky(t, after...))
		got := map[string]int{}
		for i := range from {
			if from[i] != to[i] {
				got[from[i]+">"+to[i]]++
			}
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Errorf("%v to %v: got the moves %v, want %v", before, after, got, want)
		}
		for move, share := range want {
			if n := got[move]; n < int(share*sessions)-354 || n > int(share*sessions)+354 {
				t.Errorf("%v to %v: %d sessions moved %s, want a share of %.3f", before, after, n, move, share)
			}
		}
	}
	f([]int{90, 10}, []int{90, 10}, nil)
	f([]int{90, 10}, []int{80, 20}, map[string]float64{"p0>p1": 0.1})
	f([]int{90, 10}, []int{100, 0}, map[string]float64{"p1>p0": 0.1})
	f([]int{1, 1, 2}, []int{1, 1, 0}, map[string]float64{"p2>p0": 0.25, "p2>p1": 0.25})
	f([]int{1, 1, 0}, []int{1, 1, 2}, map[string]float64{"p0>p2": 0.25, "p1>p2": 0.25})
}

func BenchmarkChooseBySession(b *testing.B) {
	p := newPool("p", "", nil)
	var e entry
	var targets []Target
	for i := range 8 {
		targets = append(targets, Target{Pool: "p", Model: strconv.Itoa(i), Weight: 1})
	}
	if err := e.setTargets(targets, map[string]*pool{"p": p}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.choose("0b06b4f1-5f3a-4c8c-9f8e-3c7a1e6f2f10")
	}
}

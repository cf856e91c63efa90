package meter

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// sequences is how many exchanges a normal run makes up.
const sequences = 4000

// TestModel: whatever happens to an exchange, its record is the model's, at its
// end and in between.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(sequences) {
		if agree(t, seed); t.Failed() {
			return
		}
	}
}

// FuzzModel is [TestModel] with seeds that are found.
func FuzzModel(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { agree(t, seed) })
}

// agree plays one exchange to the meter and to the model.
func agree(t *testing.T, seed uint64) {
	t.Helper()
	x := tell(seed)
	differ := func(what string, got, want *Record) {
		t.Helper()
		if d := difference(got, want); d != "" {
			t.Errorf("seed %d, %s:\n%s%s", seed, what, d, x)
		}
	}
	random := rand.New(rand.NewPCG(seed, 5))
	m := New(x.start, x.options)
	m.Routed(Route{Pool: "before"})
	if !reflect.ValueOf(x.asked).IsZero() {
		m.Ask(x.asked)
	}
	m.Routed(x.routed)
	if x.head {
		m.Headers(x.headAt, x.status, x.contentType, x.coding)
	}
	m.Delivered(x.sent, Opt[time.Duration]{})
	var reached Milestone
	from := 0
	for i, c := range x.cuts {
		now := m.Observe(c.at, x.body[from:c.upTo])
		if now&reached != 0 {
			t.Errorf("seed %d, frame %d: %b reached again", seed, i, now&reached)
		}
		reached |= now
		from = c.upTo
		m.check(t)
		if random.IntN(8) == 0 {
			differ(fmt.Sprintf("after frame %d", i), m.Snapshot(c.at), x.record(i+1, c.at, false))
		}
	}
	whole := x.look(len(x.cuts), false)
	if want := whole.reached(); reached != want {
		t.Errorf("seed %d: milestones %b, want %b%s", seed, reached, want, x)
	}
	if _, unsure := whole.stalls(); unsure {
		t.Errorf("seed %d: the times leave a stall open", seed)
	}
	r := m.Close(x.end, x.cause)
	differ("at the end", r, x.record(len(x.cuts), x.end, true))
	if got, want := r.Class(), classOf(r.Outcome, r.Status); got != want {
		t.Errorf("seed %d: class %q, want %q", seed, got, want)
	}
}

// difference names the fields in which two records differ.
func difference(got, want *Record) string {
	var b strings.Builder
	for i := 1; i < len(got.Marks); i++ {
		if got.Marks[i].At < got.Marks[i-1].At {
			b.WriteString("marks are not in the order of time\n")
		}
	}
	// The order of marks of one time is not told, nor is the rounding of a TPOT.
	tidy(got)
	tidy(want)
	for i := range min(len(got.TPOT), len(want.TPOT)) {
		if d := got.TPOT[i].Value - want.TPOT[i].Value; d == 1 || d == -1 {
			got.TPOT[i].Value = want.TPOT[i].Value
		}
	}
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			fmt.Fprintf(&b, "%s:\n got %+v\nwant %+v\n", g.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
	return b.String()
}

func tidy(r *Record) {
	slices.SortFunc(r.Marks, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Choice, b.Choice), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Gap, b.Gap))
	})
}

// String tells an exchange as it was played.
func (x *story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, asked %+v\n", x.start.Method, x.start.Path, x.asked)
	if x.head {
		fmt.Fprintf(&b, "%v headers %d %s %s\n", x.headAt, x.status, x.contentType, x.coding)
	}
	from := 0
	for _, c := range x.cuts {
		fmt.Fprintf(&b, "%v %q\n", c.at, x.body[from:c.upTo])
		from = c.upTo
	}
	fmt.Fprintf(&b, "%v close, cause %d\n", x.end, x.cause)
	return b.String()
}

package meter

import (
	"slices"
	"testing"
	"time"
)

var bounds = Options{GapBounds: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond}}

func bucket(n int64, total int) GapBucket {
	return GapBucket{n, time.Duration(total) * time.Millisecond}
}

// spread fails where gaps are distributed in another way.
func spread(t *testing.T, what string, got Gaps, exact, assumed []GapBucket) {
	t.Helper()
	if !slices.Equal(got.Exact, exact) || !slices.Equal(got.Assumed, assumed) {
		t.Errorf("%s: got %v, want %v and %v", what, got, exact, assumed)
	}
}

func ids(n int) string {
	b := []byte(`"token_ids":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '7')
	}
	return string(append(b, ']'))
}

// A gap before an instant of d tokens is d samples of its d-th part.
func TestITL(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{options: bounds, frames: []frame{
		at(0, chunk(0, text("a"), ids(3))), // the first has no gap
		at(40, chunk(0, text("b"), ids(4))),
		at(55, chunk(0, text("c"), ids(1))),
		at(85, chunk(0, text("d"), ids(1))),
	}})
	spread(t, "ITL", r.ITL, []GapBucket{bucket(4, 40), bucket(1, 15), bucket(1, 30)}, nil)
	spread(t, "gap", r.Gap, []GapBucket{{}, bucket(1, 15), bucket(2, 70)}, nil)
	same(t, "longest gap", r.LongestGap, ms(40))
}

// Where the number of tokens is not known, a gap is one sample, and it is said.
func TestITLAssumed(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{options: bounds, frames: []frame{
		at(0, chunk(0, text("a"))), at(15, chunk(0, text("b"))), at(30, chunk(0, text("c"), ids(3))),
	}})
	spread(t, "ITL", r.ITL, []GapBucket{bucket(3, 15), {}, {}}, []GapBucket{{}, bucket(1, 15), {}})
	spread(t, "gap", r.Gap, []GapBucket{{}, bucket(1, 15), {}}, []GapBucket{{}, bucket(1, 15), {}})
}

// Events of one choice with one arrival time are one instant.
func TestInstant(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{options: bounds, frames: []frame{
		at(0, chunk(0, text("a"), ids(1))),
		at(30, chunk(0, text("b"), ids(1)), chunk(0, text("c"), ids(1))),
		at(30, chunk(0, text("d"), ids(1))), // a piece of the same frame
		at(60, chunk(0, text("e"), ids(1))),
	}})
	spread(t, "ITL", r.ITL, []GapBucket{bucket(3, 30), {}, bucket(1, 30)}, nil)
	spread(t, "gap", r.Gap, []GapBucket{{}, {}, bucket(2, 60)}, nil)
	same(t, "events", r.EvidenceEvents[0], 5)

	r = play(t, exchange{options: bounds, frames: []frame{
		at(0, chunk(0, text("a"))), at(30, chunk(0, text("b"), ids(5)), chunk(0, text("c"))),
	}})
	spread(t, "one of them not known", r.ITL, nil, []GapBucket{{}, {}, bucket(1, 30)})

	r = play(t, exchange{frames: []frame{at(5, chunk(0, text("a")), chunk(0, text("b")))}})
	same(t, "longest gap in one frame", r.LongestGap, ms(0))
	same(t, "ITL in one frame", samples(r.ITL), 0)
	r = play(t, exchange{frames: []frame{at(5, chunk(0, text("a")))}})
	same(t, "longest gap of one event", r.LongestGap.OK, false)
}

// Gaps are each choice's own.
func TestGapsByChoice(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{options: bounds, frames: []frame{
		at(0, chunk(0, text("a"), ids(1))), at(10, chunk(1, text("b"), ids(1))),
		at(30, chunk(0, text("c"), ids(1))), at(45, chunk(1, text("d"), ids(1))),
	}})
	spread(t, "gap", r.Gap, []GapBucket{{}, {}, bucket(2, 65)}, nil)
	same(t, "longest gap", r.LongestGap, ms(35))
}

func TestITLVoid(t *testing.T) {
	t.Parallel()
	f := func(what string, want bool, events, usage int, more ...string) {
		t.Helper()
		x := exchange{}
		for i := range events {
			x.frames = append(x.frames, at(i, chunk(0, text("a"), more...)))
		}
		x.frames = append(x.frames, at(events, final(usage), done))
		r := play(t, x)
		same(t, what, r.ITLVoid, want)
		same(t, what+": samples", samples(r.ITL) == 0, want)
		same(t, what+": gaps", samples(r.Gap) > 0, true)
	}
	f("as assumed", false, 10, 10)
	f("two more", false, 10, 12)
	f("three more", true, 10, 13)
	f("10 % more", false, 40, 44)
	f("more than 10 % more", true, 40, 45)
	f("fewer", false, 40, 20)
	f("all known", false, 10, 99, ids(1))

	r := play(t, exchange{frames: []frame{at(1, chunk(0, text("a"))), at(2, chunk(0, text("b"))), at(3, counted(0, 99, text("c")))}})
	same(t, "running usage is not final", r.ITLVoid, false)
}

func TestTPOT(t *testing.T) {
	t.Parallel()
	f := func(what string, want []TPOTSample, frames ...frame) {
		t.Helper()
		last := frames[len(frames)-1].at
		frames = append(frames, at(last, chunk(0, nothing, stop), done))
		if got := play(t, exchange{frames: frames}).TPOT; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	exact := func(n int) TPOTSample { return TPOTSample{Value: ms(n).V} }
	assumed := func(n int) TPOTSample { return TPOTSample{Value: ms(n).V, Assumed: true} }
	a, b := chunk(0, text("a")), chunk(0, text("b"))

	f("first instant known", []TPOTSample{exact(10)}, at(0, chunk(0, text("a"), ids(3))), at(40, chunk(0, text("b"), ids(4))))
	f("by usage, first instant not known", []TPOTSample{assumed(10)}, at(0, a), at(40, b, final(5)))
	f("by usage, first instant known", []TPOTSample{exact(10)}, at(0, chunk(0, text("a"), ids(2))), at(30, b), at(40, b, final(6)))
	f("estimated", []TPOTSample{assumed(20)}, at(0, a), at(40, b)) // two texts and the stop
	f("estimated, first instant known", []TPOTSample{assumed(40)}, at(0, chunk(0, text("a"), ids(2))), at(40, b))
	f("less than two tokens a choice", nil,
		at(0, a, chunk(1, text("a"))), at(20, b), at(40, chunk(1, text("b")), final(3)))
	f("one token", nil, at(0, a), at(40, final(1)))
	f("one instant", nil, at(0, a, b), at(40, final(9)))
	f("no token", nil, at(0, role(0)), at(40, final(9)))
	f("all in the first instant", nil, at(0, counted(0, 5, text("a"))), at(40, chunk(0, text("b")), final(5)))
	f("two choices, each known", []TPOTSample{exact(10), exact(20)},
		at(0, counted(0, 1, text("a")), counted(1, 1, text("a"))),
		at(20, counted(1, 2, text("b"))), at(40, counted(0, 5, text("b"))))
	f("two choices, the total known", []TPOTSample{assumed(10), assumed(5)},
		at(0, chunk(0, text("a")), chunk(1, text("a"))),
		at(20, chunk(1, text("b"))), at(40, chunk(0, text("b")), final(10)))
	f("a choice that is not followed", nil, at(0, a, `{"choices":[{"index":500,"delta":{}}]}`), at(20, chunk(1, text("b"))), at(40, b, final(10)))

	for _, c := range []Cause{CauseClient, CauseUpstream, CauseAborted} {
		r := play(t, exchange{cause: c, frames: []frame{at(0, a), at(40, b, final(5))}})
		same(t, "of an exchange that was not done", len(r.TPOT), 0)
	}
}

// Within an exchange whose every token is known, the mean of ITL is TPOT.
func TestMeanITLIsTPOT(t *testing.T) {
	t.Parallel()
	x := exchange{}
	for i, n := range []int{2, 1, 4, 1, 3, 7} {
		x.frames = append(x.frames, at(i*i*10, chunk(0, text("a"), ids(n))))
	}
	x.frames = append(x.frames, at(999, chunk(0, nothing, stop), done))
	r := play(t, x)
	b := r.ITL.Exact[0]
	same(t, "mean ITL", b.Sum/time.Duration(b.Count), r.TPOT[0].Value)
}

func TestStall(t *testing.T) {
	t.Parallel()
	f := func(what string, want int, gaps ...int) {
		t.Helper()
		x := exchange{frames: []frame{at(0, chunk(0, text("a")))}}
		now := 0
		for _, g := range gaps {
			now += g
			x.frames = append(x.frames, raw(now, ": ping\n\n"), at(now, chunk(0, text("a"))))
		}
		r := play(t, x)
		same(t, what, r.Stalls, want)
		marks := 0
		for _, k := range r.Marks {
			if k.Kind == MarkStall {
				marks++
			}
		}
		same(t, what+": marks", marks, want)
	}
	f("the shortest is none", 0, 500)
	f("longer than the shortest", 1, 501)
	f("of a fast stream", 1, 10, 10, 10, 501, 10)
	f("eight times a slow stream's median is none", 0, 100, 100, 100, 800)
	f("more than eight times", 1, 100, 100, 100, 801)
	f("the median is the middle's", 1, 10, 10, 10, 100, 100, 501)
	f("and moves", 0, 10, 100, 100, 100, 700)
	f("twice", 2, 10, 10, 600, 10, 600)
	f("slower than the slowest class", 1, 600_000, 600_000, 4_800_000) // the first
}

// Keep-alives do not end a stall, and a choice's stall is its own.
func TestStallOfAChoice(t *testing.T) {
	t.Parallel()
	x := exchange{frames: []frame{at(0, chunk(0, text("a"))), at(0, chunk(1, text("a")))}}
	for i := 1; i <= 9; i++ {
		x.frames = append(x.frames, at(i*100, chunk(1, text("a"))), raw(i*100, ": ping\n\n"))
	}
	x.frames = append(x.frames, at(900, chunk(0, text("a"))))
	r := play(t, x)
	same(t, "stalls", r.Stalls, 1)
	same(t, "keep-alives", r.KeepAlives, 9)
}

// A gap that no class has room for has no part in the median.
func TestStall_BeyondEveryClass(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{
		at(0, chunk(0, text("a"))), at(500_000_000, chunk(0, text("a"))), at(500_000_600, chunk(0, text("a"))),
	}})
	same(t, "stalls", r.Stalls, 2)
}

package meter

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{cause: CauseClient, end: 2000, frames: []frame{
		raw(1, ": ping\n\n"), at(2, role(0)), at(3, chunk(0, thought)), at(4, chunk(0, text("a"), ids(2))),
		at(900, chunk(0, text("b"))), at(901, chunk(0, nothing, stop)), at(902, final(9)), at(903, anError),
	}})
	type mark struct {
		at     int
		kind   MarkKind
		index  int32
		tokens int32
		gap    int
	}
	var got []mark
	for _, k := range r.Marks {
		got = append(got, mark{int(k.At.Milliseconds()), k.Kind, k.Index, k.Tokens, int(k.Gap.Milliseconds())})
		if (k.Kind == MarkChunk) != (k.Bytes > 0) {
			t.Errorf("bytes: %+v", k)
		}
	}
	want := []mark{
		{1, MarkFirstByte, 0, 0, 0}, {2, MarkRole, 0, 0, 0},
		{3, MarkFirstToken, 0, 0, 0}, {3, MarkChunk, 0, 0, 0},
		{4, MarkFirstAnswer, 0, 0, 0}, {4, MarkChunk, 1, 2, 1},
		{900, MarkChunk, 2, 0, 896}, {900, MarkStall, 0, 0, 896}, {900, MarkLastToken, 0, 0, 0},
		{901, MarkFinish, 0, 0, 0}, {902, MarkUsage, 0, 0, 0}, {903, MarkError, 0, 0, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}

	r = play(t, exchange{cause: CauseClient, end: 9, frames: []frame{begun}})
	last := r.Marks[len(r.Marks)-1]
	same(t, "cancelled", last, Mark{At: ms(9).V, Kind: MarkCancelled})
}

// Chunks are thinned evenly, whatever the length; milestones stay.
func TestMarksThinned(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 7} {
		for _, n := range []int{1, 7, 63, 64, 65, 128, 129, 1000, 5000} {
			x := exchange{options: Options{MaxChunks: limit}}
			m := x.meter()
			m.Headers(0, 200, "text/event-stream", "")
			data := []byte("data: " + chunk(0, text("a")) + "\n\n")
			for i := range n {
				m.Observe(time.Duration(i)*time.Millisecond, data)
			}
			m.check(t)
			r := m.Close(0, CauseEnd)
			var kept []int32
			for _, k := range r.Marks {
				if k.Kind == MarkChunk {
					kept = append(kept, k.Index)
				}
			}
			what := fmt.Sprintf("%d events, at most %d chunks: %d kept", n, limit, len(kept))
			most := limit
			if most == 0 {
				most = 64
			}
			same(t, what+": thinned", r.MarksThinned, int64(n-len(kept)))
			if len(kept) > most || n >= most && len(kept) < most/2 || n < most && len(kept) != n {
				t.Error(what)
			}
			for i, index := range kept {
				if i > 0 && index != kept[1]*int32(i) {
					t.Fatalf("%s: not even: %v", what, kept)
				}
			}
			if len(r.Marks) != len(kept)+4 {
				t.Errorf("%s: %d marks", what, len(r.Marks))
			}
		}
	}
}

func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	x := exchange{}
	for i := range 100 {
		x.frames = append(x.frames, at(i, anError))
	}
	r := play(t, x)
	same(t, "marks", len(r.Marks), maxOtherMarks+1) // and the first byte
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{
		at(10, chunk(0, text("a"))),
		at(20, chunk(0, text("a")), chunk(1, text("b"), ids(3))), at(20, chunk(0, text("c"))),
		at(35, chunk(1, text("d"), ids(2))),
	}})
	if want := []int32{0, 100, 150}; !slices.Equal(r.Timeline.Gaps100us, want) {
		t.Errorf("gaps %v, want %v", r.Timeline.Gaps100us, want)
	}
	if want := []int32{1, 5, 2}; !slices.Equal(r.Timeline.Tokens, want) {
		t.Errorf("tokens %v, want %v", r.Timeline.Tokens, want)
	}
	same(t, "stride", r.Timeline.Stride, 1)

	r = play(t, exchange{frames: []frame{begun}})
	same(t, "slots of nothing", len(r.Timeline.Gaps100us), 0)
}

// However long a stream, its timeline has at most 512 slots, each but the last
// of as many instants, and neither time nor a token is lost.
func TestTimelineHalves(t *testing.T) {
	t.Parallel()
	for _, n := range []int{511, 512, 513, 1024, 1025, 5000, 70_000} {
		var line timeline
		const step = 1370 * time.Microsecond // no whole number of units
		for i := range n {
			line.add(time.Duration(i)*step, 2)
		}
		got := line.result()
		var gaps, count int64
		for i := range got.Gaps100us {
			gaps += int64(got.Gaps100us[i])
			count += int64(got.Tokens[i])
			if i < len(got.Tokens)-1 && got.Tokens[i] != int32(2*got.Stride) {
				t.Fatalf("%d instants: slot %d has %d tokens, stride %d", n, i, got.Tokens[i], got.Stride)
			}
		}
		same(t, fmt.Sprintf("%d instants: slots", n), len(got.Gaps100us), (n+got.Stride-1)/got.Stride)
		if len(got.Gaps100us) > 512 || n > 512 && len(got.Gaps100us) < 256 {
			t.Errorf("%d instants: %d slots", n, len(got.Gaps100us))
		}
		same(t, fmt.Sprintf("%d instants: tokens", n), count, int64(2*n))
		same(t, fmt.Sprintf("%d instants: time", n), gaps, int64(time.Duration(n-1)*step/timelineUnit))
	}
}

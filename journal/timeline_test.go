package journal

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// timelines are the recordings that are drawn: what each is to show.
var timelines = map[string]string{
	"stall-chat":            "a stall, and the catching up behind it",
	"chat-reasoning":        "where the answer began",
	"chat-long-600":         "slots of two arrivals",
	"chat-n2":               "two choices in one",
	"chat-abort-3":          "few tokens, and a client that hung up",
	"engine-dies-midstream": "an error",
	"interval-chat-usage":   "tokens that come several at a time, which nobody counts",
	"chat-usage-1-token":    "one token, which draws nothing",
	"chat-json":             "no stream, which draws nothing",
}

func TestTimeline(t *testing.T) {
	for name := range timelines {
		t.Run(name, func(t *testing.T) {
			rec, err := recording.ReadFile("../internal/testkit/testdata/streams/" + name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			r := recording.Replay(rec, recording.Cut{})
			got := drawRecord(t, r, 80)
			checkPage(t, got, 80)
			checkPage(t, drawRecord(t, r, 100), 100)
			checkPage(t, drawRecord(t, r, 0), MinWidth)
			golden := filepath.Join("testdata", "timeline", name+".txt")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func drawRecord(t testing.TB, r *meter.Record, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Waterfall(&b, r, width); err != nil {
		t.Fatalf("Waterfall: %v", err)
	}
	return b.Bytes()
}

// Whatever stands in a timeline, the page keeps its width and ends.
func TestTimeline_Odd(t *testing.T) {
	f := func(name string, r meter.Record, drawn bool) {
		t.Helper()
		r.FirstToken = meter.Some(time.Second)
		page := drawRecord(t, &r, 80)
		checkPage(t, page, 80)
		if got := strings.Contains(string(page), "timeline"); got != drawn {
			t.Errorf("%s: drawn: %t\n%s", name, got, page)
		}
	}
	line := func(stride int, tokens []int32, gaps ...int32) meter.Timeline {
		return meter.Timeline{Gaps100us: gaps, Tokens: tokens, Stride: stride}
	}
	f("none", meter.Record{}, false)
	f("one instant", meter.Record{Timeline: line(1, []int32{3}, 0)}, false)
	f("two instants closer than a unit", meter.Record{Timeline: line(1, []int32{3, 3}, 0, 0)}, false)
	f("two instants", meter.Record{Timeline: line(1, []int32{3, 3}, 0, 1)}, true)
	f("no tokens", meter.Record{Timeline: line(1, []int32{0, 0}, 0, 1)}, false)
	f("more gaps than tokens", meter.Record{Timeline: line(1, []int32{1}, 0, 1)}, false)
	f("no stride", meter.Record{Timeline: line(0, []int32{1, 1}, 0, 1)}, false)
	f("below zero", meter.Record{Timeline: line(1, []int32{1, -1, 1}, -5, 1, -1)}, true)
	f("the largest", meter.Record{
		Timeline: line(math.MaxInt, []int32{math.MaxInt32, math.MaxInt32}, math.MaxInt32, math.MaxInt32),
		Marks: []meter.Mark{
			{Kind: meter.MarkStall, At: math.MaxInt64, Gap: math.MaxInt64},
			{Kind: meter.MarkError, At: math.MinInt64 / 2},
			{Kind: meter.MarkStall}, {Kind: meter.MarkStall}, {Kind: meter.MarkStall},
		},
		Stalls: math.MaxInt,
	}, true)
}

// A slot of several arrivals is spread over its time.
func TestTimeline_Stride(t *testing.T) {
	r := meter.Record{
		FirstToken: meter.Some(time.Second),
		Timeline:   meter.Timeline{Gaps100us: []int32{300, 400}, Tokens: []int32{4, 4}, Stride: 4},
	}
	c := newChart(&r, 8)
	if c == nil || c.total != 8 || c.most != 1 || c.length != 70*time.Millisecond {
		t.Fatalf("got %+v", c)
	}
	if got := string(c.row(1, 1)); got != "########" {
		t.Errorf("drawn as %q", got)
	}
}

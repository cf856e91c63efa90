package meter

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plainTimeline is a timeline without varints: all instants, put into slots at
// the end.
type plainTimeline struct {
	gaps, tokens []int64
	at           time.Duration
}

func (p *plainTimeline) add(at time.Duration, tokens int64) {
	if len(p.gaps) > 0 && at == p.at {
		p.tokens[len(p.tokens)-1] += tokens
		return
	}
	gap := int64(0)
	if len(p.gaps) > 0 {
		gap = int64(at/timelineUnit - p.at/timelineUnit)
	}
	p.gaps, p.tokens, p.at = append(p.gaps, gap), append(p.tokens, tokens), at
}

func (p *plainTimeline) result() Timeline {
	if len(p.gaps) == 0 {
		return Timeline{}
	}
	out := Timeline{Stride: 1}
	for len(p.gaps) > maxSlots*out.Stride {
		out.Stride *= 2
	}
	for i := range p.gaps {
		if i%out.Stride == 0 {
			out.Gaps100us, out.Tokens = append(out.Gaps100us, 0), append(out.Tokens, 0)
		}
		last := len(out.Tokens) - 1
		out.Gaps100us[last] = clamp32(int64(out.Gaps100us[last]) + p.gaps[i])
		out.Tokens[last] = clamp32(int64(out.Tokens[last]) + p.tokens[i])
	}
	return out
}

// FuzzTimeline plays any instants: each is two bytes of gap, whose unit grows
// with the third, and one of tokens.
func FuzzTimeline(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 200, 0, 0, 1, 255, 255, 9, 255}, uint16(2000))
	f.Add([]byte{1, 0, 0, 1}, uint16(513))
	f.Add([]byte{255, 255, 12, 255}, uint16(4096))
	f.Fuzz(func(t *testing.T, instants []byte, n uint16) {
		if len(instants) < 4 {
			return
		}
		var got timeline
		var want plainTimeline
		var at time.Duration
		for i := range int(n) {
			k := instants[4*i%(len(instants)/4*4):]
			at += time.Duration(binary.LittleEndian.Uint16(k)) * timelineUnit << (k[2] % 13)
			tokens := int64(k[3])<<(k[2]%24) + 1
			got.add(at, tokens)
			want.add(at, tokens)
		}
		if diff := cmp.Diff(want.result(), got.result()); diff != "" {
			t.Errorf("after %d instants (-want +got):\n%s", n, diff)
		}
	})
}

// What a live stream holds does not grow with its tokens.
func TestTimelineIsSmall(t *testing.T) {
	var line timeline
	for i := range 100_000 {
		line.add(time.Duration(i)*20*time.Millisecond, 1)
		if n := cap(line.before); n > 3<<10 {
			t.Fatalf("%d bytes after %d instants", n, i)
		}
	}
}

package meter

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzChunkMarks keeps any marks, and thins them in between: what comes out is
// what a list of them would be.
func FuzzChunkMarks(f *testing.F) {
	f.Add(int64(20_000_000), int64(20_000_000), int32(0), int32(1), int32(1), int32(200), uint8(64), uint8(64))
	f.Add(int64(0), int64(math.MaxInt64), int32(127), int32(math.MaxInt32), int32(math.MaxInt32), int32(math.MaxInt32), uint8(7), uint8(3))
	f.Add(int64(-5), int64(-1), int32(-1), int32(0), int32(0), int32(0), uint8(9), uint8(1))
	f.Fuzz(func(t *testing.T, step, gap int64, choice, index, tokens, size int32, n, every uint8) {
		var got chunkMarks
		var want []Mark
		for i := range int(n) {
			k := Mark{
				At: time.Duration(step * int64(i)), Kind: MarkChunk, Gap: time.Duration(gap),
				Choice: choice, Index: index + int32(i), Tokens: tokens, Bytes: size,
			}
			got.add(k)
			want = append(want, k)
			if every == 0 || i%int(every) != int(every)-1 {
				continue
			}
			got.thin()
			kept := want[:0]
			for i := 0; i < len(want); i += 2 {
				kept = append(kept, want[i])
			}
			want = kept
		}
		if diff := cmp.Diff(want, got.appendTo(nil)); diff != "" && len(want) > 0 {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got.n != len(want) {
			t.Errorf("%d are kept, want %d", got.n, len(want))
		}
	})
}

package meter_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// flusher is a server's end of a content coding.
type flusher interface {
	io.WriteCloser
	Flush() error
}

// codings are the content codings, by what stands in content-encoding and how
// it is made.
var codings = []struct {
	name, header string
	open         func(w io.Writer) flusher
}{
	{"gzip", "gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"zlib", "deflate", func(w io.Writer) flusher { return zlib.NewWriter(w) }},
	{"bare deflate", "deflate", func(w io.Writer) flusher { return must(flate.NewWriter(w, flate.BestSpeed)) }},
	{"br", "br", func(w io.Writer) flusher { return brotli.NewWriterLevel(w, 4) }},
	{"zstd", "zstd", func(w io.Writer) flusher {
		return must(zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10)))
	}},
}

// must returns what can't fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// compress returns the recording as a server sends it that compresses, and
// flushes with every piece.
func compress(t *testing.T, rec *recording.Recording, header string, open func(io.Writer) flusher) *recording.Recording {
	t.Helper()
	if rec.Head == nil || len(rec.Pieces) == 0 {
		return rec
	}
	var b bytes.Buffer
	w := open(&b)
	cut := *rec
	cut.Pieces = nil
	for i, p := range rec.Pieces {
		if _, err := w.Write(p.Data); err != nil {
			t.Fatal(err)
		}
		end := w.Flush
		if i == len(rec.Pieces)-1 && rec.End == recording.EndEOF {
			end = w.Close
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		cut.Pieces = append(cut.Pieces, recording.Piece{At: p.At, Data: bytes.Clone(b.Bytes())})
		b.Reset()
	}
	head := *rec.Head
	head.Headers = append(slices.Clip(head.Headers), recording.Header{Name: "Content-Encoding", Value: header})
	cut.Head = &head
	return &cut
}

// TestT1_Compressed: the record of a compressed recording is that of the same
// recording as it is, the bytes apart, whole, byte by byte and cut anywhere.
func TestT1_Compressed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(streams, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			rec, err := recording.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := recording.Replay(rec, recording.Cut{})
			for _, c := range codings {
				compressed := compress(t, rec, c.header, c.open)
				size := 0
				for _, p := range compressed.Pieces {
					size += len(p.Data)
				}
				random := rand.New(rand.NewPCG(2, uint64(size)))
				for _, cut := range []func(int) bool{
					func(int) bool { return false },
					func(int) bool { return true },
					func(int) bool { return random.IntN(40) == 0 },
				} {
					sent := *compressed
					sent.Pieces = cutAt(compressed.Pieces, cut)
					sameRecord(t, c.name, recording.Replay(&sent, recording.Cut{}), want, size)
				}
			}
		})
	}
}

// sameRecord compares all but what cutting and compressing may change.
func sameRecord(t *testing.T, name string, got, want *meter.Record, size int) {
	t.Helper()
	if got.Bytes != int64(size) {
		t.Errorf("%s: bytes: got %d, want %d", name, got.Bytes, size)
	}
	got.Bytes, got.Frames, got.SharedFrames = want.Bytes, want.Frames, want.SharedFrames
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %s\nwant %s", name, got.AppendJSON(nil), want.AppendJSON(nil))
	}
}

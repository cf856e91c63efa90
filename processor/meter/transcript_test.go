package meter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

const streams = "../../internal/testkit/testdata/streams"

// notOfTheRecord are the fields of truth.json that a record does not have.
var notOfTheRecord = map[string]bool{
	"path": true, "end": true, "headers_us": true, "engine": true, "unfinished_bytes": true, "error": true,
}

type truth map[string]json.RawMessage

func truths(t *testing.T) map[string]truth {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(streams, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]truth
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTranscripts: the record of every recording is what is true of it, and
// the same for every cut.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	all := truths(t)
	files, err := filepath.Glob(filepath.Join(streams, "*.jsonl"))
	if err != nil || len(files) == 0 || len(files) != len(all) {
		t.Fatalf("%d recordings, %d truths: %v", len(files), len(all), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec, err := recording.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole := recording.Replay(rec, recording.Cut{})
			compare(t, whole, all[name])
			for _, cut := range cuts(t, rec) {
				r := recording.Replay(cut.rec, recording.Cut{})
				r.Frames, r.SharedFrames = whole.Frames, whole.SharedFrames
				if !reflect.DeepEqual(r, whole) {
					t.Fatalf("cut %s:\n got %s\nwant %s", cut.name, r.AppendJSON(nil), whole.AppendJSON(nil))
				}
			}
		})
	}
}

// compare checks every field that the truth and the record have.
func compare(t *testing.T, r *meter.Record, want truth) {
	t.Helper()
	var got truth
	if err := json.Unmarshal(r.AppendJSON(nil), &got); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for f := range want {
		fields[f] = !notOfTheRecord[f]
	}
	if r.OutputSource == meter.SourceEstimate {
		fields["output_tokens"] = false
	}
	for f, compared := range fields {
		if compared && !sameJSON(t, got[f], want[f]) {
			t.Errorf("%s: got %s, want %s", f, got[f], want[f])
		}
	}
	var failure struct{ Type string }
	if e := want["error"]; e != nil {
		if err := json.Unmarshal(e, &failure); err != nil {
			t.Fatal(err)
		}
		if r.ErrorType != failure.Type {
			t.Errorf("error type: got %q, want %q", r.ErrorType, failure.Type)
		}
	}
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%q: %v", a, err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

type cutRecording struct {
	name string
	rec  *recording.Recording
}

const (
	// stride is the size of the parts that a recording is cut into, once from
	// each start, so that every offset is a cut.
	stride = 37
	// single is how often a recording is cut in two, somewhere.
	single = 20
)

// cuts returns the recording byte by byte, cut at every offset, with other cuts
// no nearer than stride, and cut in two at some.
func cuts(t *testing.T, rec *recording.Recording) []cutRecording {
	t.Helper()
	size := 0
	for _, p := range rec.Pieces {
		size += len(p.Data)
	}
	var list []cutRecording
	add := func(name string, isCut func(offset int) bool) {
		cut := *rec
		cut.Pieces = cutAt(rec.Pieces, isCut)
		list = append(list, cutRecording{name, &cut})
	}
	add("byte by byte", func(int) bool { return true })
	for start := range stride {
		add(fmt.Sprintf("at %d, every %d", start, stride), func(offset int) bool { return offset%stride == start })
	}
	random := rand.New(rand.NewPCG(1, uint64(size)))
	for range min(single, size) {
		at := random.IntN(size)
		add(fmt.Sprintf("at %d", at), func(offset int) bool { return offset == at })
	}
	return list
}

// cutAt returns the pieces, cut at some offsets of all their bytes.
func cutAt(pieces []recording.Piece, isCut func(offset int) bool) []recording.Piece {
	var out []recording.Piece
	offset := 0
	for _, p := range pieces {
		begin := 0
		for i := 1; i < len(p.Data); i++ {
			if isCut(offset + i) {
				out = append(out, recording.Piece{At: p.At, Data: p.Data[begin:i]})
				begin = i
			}
		}
		out = append(out, recording.Piece{At: p.At, Data: p.Data[begin:]})
		offset += len(p.Data)
	}
	return out
}

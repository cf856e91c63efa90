package meter

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// fuzzedPaths has one path for each dialect, and one of none.
var fuzzedPaths = []string{
	"/v1/chat/completions", completionsPath, responsesPath, messagesPath, transcriptionPath, generatePath, embeddingsPath, "/x",
}

// FuzzMeter: whatever the response and however it is cut, every invariant
// holds, the record is the same, and it has exactly one outcome and a class.
func FuzzMeter(f *testing.F) {
	files, err := filepath.Glob("../../internal/testkit/testdata/streams/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) > 6<<10 {
			continue
		}
		var body []byte
		path, none := 0, uint8(len(fuzzedPaths)-1)
		for i, p := range fuzzedPaths {
			if bytes.Contains(b, []byte(`"path":"`+p+`"`)) {
				path = i
			}
		}
		for line := range bytes.Lines(b) {
			var piece struct{ Data string }
			if err := json.Unmarshal(line, &piece); err != nil {
				f.Fatal(err)
			}
			body = append(body, piece.Data...)
		}
		f.Add(body, 50, uint8(CauseEnd), uint8(path), true, false)
		f.Add(body, 50, uint8(CauseEnd), none, true, false)
		f.Add(body, 120, uint8(CauseClient), uint8(path), true, true)
		f.Add(body, 300, uint8(CauseEnd), uint8(path), false, false)
	}
	f.Fuzz(func(t *testing.T, body []byte, size int, cause, path uint8, stream, echo bool) {
		if len(body) > 8<<10 {
			return
		}
		c := Cause(cause % (uint8(CauseRejected) + 1))
		size = max(size, 1)
		whole := fuzzed(t, body, size, size, c, path, stream, echo)
		// The same bytes at the same times, cut smaller.
		cut := fuzzed(t, body, size, max(size/3, 1), c, path, stream, echo)
		cut.Frames, cut.SharedFrames = whole.Frames, whole.SharedFrames
		if !reflect.DeepEqual(cut, whole) {
			t.Fatalf("cut:\n got %+v\nwant %+v", cut, whole)
		}
		if whole.Outcome == "" || whole.Class() == "" {
			t.Fatalf("outcome %q, class %q", whole.Outcome, whole.Class())
		}
		if (whole.OutputTokens.OK) != (whole.OutputSource != SourceNone) {
			t.Fatalf("tokens %v by %q", whole.OutputTokens, whole.OutputSource)
		}
		if len(whole.Finish) != whole.Choices || len(whole.EvidenceEvents) != whole.Choices {
			t.Fatalf("%d choices, %d finishes, %d counts", whole.Choices, len(whole.Finish), len(whole.EvidenceEvents))
		}
		for i, k := range whole.Marks {
			if i > 0 && k.At < whole.Marks[i-1].At {
				t.Fatalf("marks out of order: %+v", whole.Marks)
			}
		}
		if whole.FirstToken.OK && whole.NoFirstToken != "" {
			t.Fatalf("a first token, and %q", whole.NoFirstToken)
		}
	})
}

// fuzzed plays body in frames of a size, each cut into parts that have its time.
func fuzzed(t *testing.T, body []byte, frame, part int, c Cause, path uint8, stream, echo bool) *Record {
	t.Helper()
	x := exchange{path: fuzzedPaths[int(path)%len(fuzzedPaths)], options: Options{MaxEvent: 4096, MaxChunks: 5, GapBounds: bounds.GapBounds}}
	contentType := jsonType
	if stream {
		contentType = "text/event-stream"
	}
	m := x.meter()
	m.Ask(dialect.Request{Dialect: dialect.ForPath(x.path), Stream: stream, Echo: echo, LastRole: roleAssistant, MaxTokens: 9})
	m.Headers(0, 200, contentType, "")
	at := time.Millisecond
	for i := 0; len(body) > 0; i++ {
		n := min(frame, len(body))
		for rest := body[:n]; len(rest) > 0; {
			k := min(part, len(rest))
			m.Observe(at, rest[:k])
			rest = rest[k:]
		}
		body = body[n:]
		if i%16 == 0 {
			m.check(t)
		}
		at += time.Duration(at.Microseconds()%97) * time.Millisecond
	}
	m.Snapshot(at)
	m.check(t)
	return m.Close(at, c)
}

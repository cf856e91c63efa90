package dialect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// recorded returns the data of every event, and the bodies, of the recordings.
func recorded(tb testing.TB) (events, bodies [][]byte) {
	tb.Helper()
	files, err := filepath.Glob("../../internal/testkit/testdata/streams/*.jsonl")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var body []byte
		for line := range bytes.Lines(b) {
			var piece struct{ Data string }
			if err := json.Unmarshal(line, &piece); err != nil {
				tb.Fatal(err)
			}
			body = append(body, piece.Data...)
		}
		if len(body) > 0 && body[0] == '{' {
			bodies = append(bodies, body)
		}
		for event := range bytes.SplitSeq(body, []byte("\n\n")) {
			if data, ok := bytes.CutPrefix(event, []byte("data: ")); ok {
				events = append(events, data)
			}
		}
	}
	return events, bodies
}

// all are the dialects that are read.
var all = []Dialect{Chat, Completions, Responses, Messages, Transcription, Generate, Pooling}

// agree checks that an event is read as encoding/json would read it.
func agree(t *testing.T, d Dialect, eventType string, data []byte) {
	t.Helper()
	var f Facts
	d.Read(&f, []byte(eventType), data)
	if len(f.Choices) > MaxChoices {
		t.Fatalf("%d choices", len(f.Choices))
	}
	want, ok := oracle(d, eventType, data)
	if !ok {
		return
	}
	if f.Skipped {
		t.Fatalf("dialect %d skipped valid JSON: %s", d, data)
	}
	if got := decoded(&f); !reflect.DeepEqual(got, want) {
		t.Fatalf("dialect %d, type %q: %s\n got %+v\nwant %+v", d, eventType, data, got, want)
	}
}

func TestRecordedEvents(t *testing.T) {
	t.Parallel()
	events, _ := recorded(t)
	for _, data := range events {
		for _, d := range all {
			agree(t, d, "", data)
		}
	}
}

func fuzzEvents(f *testing.F, d Dialect) {
	f.Helper()
	events, bodies := recorded(f)
	for i := 0; i < len(events); i += 10 {
		f.Add("", events[i])
	}
	for _, b := range bodies {
		f.Add(typeError, b)
	}
	for _, data := range typedEvents {
		f.Add("", []byte(data))
		f.Add("message_delta", []byte(data))
	}
	f.Fuzz(func(t *testing.T, eventType string, data []byte) { agree(t, d, eventType, data) })
}

// One target for each dialect: whatever the bytes and the event's type, nothing
// panics and the choices are bounded; valid JSON is read as encoding/json reads
// it.
func FuzzChat(f *testing.F)          { fuzzEvents(f, Chat) }
func FuzzCompletions(f *testing.F)   { fuzzEvents(f, Completions) }
func FuzzResponses(f *testing.F)     { fuzzEvents(f, Responses) }
func FuzzMessages(f *testing.F)      { fuzzEvents(f, Messages) }
func FuzzTranscription(f *testing.F) { fuzzEvents(f, Transcription) }
func FuzzGenerate(f *testing.F)      { fuzzEvents(f, Generate) }
func FuzzPooling(f *testing.F)       { fuzzEvents(f, Pooling) }

// FuzzDiscover: a first event tells a dialect that can stream, or none.
func FuzzDiscover(f *testing.F) {
	events, _ := recorded(f)
	for i := 0; i < len(events); i += 10 {
		f.Add("", events[i])
	}
	for _, data := range typedEvents {
		f.Add("error", []byte(data))
	}
	f.Fuzz(func(t *testing.T, eventType string, data []byte) {
		if d := Discover([]byte(eventType), data); d != Unknown && !d.Streams() {
			t.Fatalf("dialect %d", d)
		}
	})
}

// bodyFacts returns what a body says, written in pieces of the given size.
func bodyFacts(t *testing.T, d Dialect, data []byte, size int) Facts {
	t.Helper()
	b := NewBody(d)
	for rest := data; len(rest) > 0; {
		n := min(size, len(rest))
		b.Write(bytes.Clone(rest[:n]))
		rest = rest[n:]
		if c := cap(b.prune.out); c > 4*maxPruned {
			t.Fatalf("%d bytes are kept of a body of %d", c, len(data))
		}
	}
	return decoded(b.Facts())
}

// answer is the part of an event's facts that a body's have.
func answer(f Facts) Facts {
	for i, c := range f.Choices {
		f.Choices[i] = Choice{Index: c.Index, Finish: c.Finish}
	}
	return f
}

// oracleAnswer reads a body with encoding/json, whole.
func oracleAnswer(d Dialect, data []byte) (f Facts, ok bool) {
	f, ok = oracle(d, "", data)
	if !ok {
		return f, false
	}
	top, _ := decode(data).(map[string]any)
	switch d {
	case Responses:
		return oracleResponsesBody(top), true
	case Messages:
		return oracleMessagesBody(top), true
	case Transcription:
		f.Answer = top["text"] != nil
	case Pooling:
		f.Answer = top["data"] != nil || top["results"] != nil
		f.Unread = 0
	default:
	}
	return answer(f), true
}

// bodyAgrees checks that a body says the same however it is cut, and what an
// event of its bytes says.
func bodyAgrees(t *testing.T, d Dialect, data []byte, size int) {
	t.Helper()
	whole := bodyFacts(t, d, data, max(len(data), 1))
	if cut := bodyFacts(t, d, data, size); !reflect.DeepEqual(cut, whole) {
		t.Fatalf("in pieces of %d: %s\n got %+v\nwant %+v", size, data, cut, whole)
	}
	want, ok := oracleAnswer(d, data)
	if !ok || len(data) > maxKeptText || len(want.Choices)+want.Unread > MaxChoices {
		return // long texts are shortened
	}
	if whole.Skipped || !reflect.DeepEqual(whole, want) {
		t.Fatalf("dialect %d: %s\n got %+v\nwant %+v", d, data, whole, want)
	}
}

// FuzzBody: whatever the bytes and the cut, a body is bounded, is read the same,
// and as an event of the same bytes.
func FuzzBody(f *testing.F) {
	events, bodies := recorded(f)
	for _, b := range bodies {
		f.Add(b, 1)
	}
	for i := 0; i < len(events); i += 50 {
		f.Add(events[i], 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 {
			size = 1
		}
		for _, d := range all {
			bodyAgrees(t, d, data, size)
		}
	})
}

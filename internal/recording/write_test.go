package recording_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/recording"
)

// What is written reads as what it was.
func TestAppendIsRead(t *testing.T) {
	t.Parallel()
	check := func(rec *recording.Recording) {
		t.Helper()
		text, err := recording.Append([]byte("\n"), rec)
		if err != nil {
			t.Errorf("%s: %v", rec.Name, err)
			return
		}
		again, err := recording.Read(bytes.NewReader(text), "x.jsonl")
		if err != nil {
			t.Errorf("%s: %v", rec.Name, err)
			return
		}
		if diff := cmp.Diff(rec, again); diff != "" {
			t.Errorf("%s: (-written +read)\n%s", rec.Name, diff)
		}
	}
	everyRecording(t, func(_ string, read func() *recording.Recording) { check(read()) })
	check(&recording.Recording{
		Name:    "bytes",
		Request: recording.Request{Method: "POST", Path: "/", Headers: recording.Headers{}, Body: []byte("\xff<>\u2028")},
		Head:    &recording.Head{Status: 200, Headers: recording.Headers{{Name: "a", Value: "<b>"}}},
		Pieces: []recording.Piece{
			{Data: []byte{}}, {At: time.Microsecond, Data: []byte("\xc3")}, {At: time.Microsecond, Data: []byte("\xa9<&>\x00\u2028")},
		},
		End: recording.EndLost, EndAt: time.Hour,
	})
	check(&recording.Recording{
		Name: "no answer", Request: recording.Request{Method: "GET", Path: "/", Headers: recording.Headers{}, Body: []byte{}},
		End: recording.EndAborted,
	})
}

func TestAppendTellsWhatItCannotWrite(t *testing.T) {
	t.Parallel()
	text, err := recording.Append([]byte("kept"), &recording.Recording{Counted: map[string]float64{"a": math.Inf(1)}})
	if err == nil || string(text) != "kept" {
		t.Errorf("got %q, %v", text, err)
	}
}

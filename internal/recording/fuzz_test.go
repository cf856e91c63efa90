package recording_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/recording"
)

// FuzzRead: whatever the file, there is a whole recording or an error that
// names the file.
func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join([]string{first, head, text, b64, end, count}, "\n")))
	f.Add([]byte(first + "\n" + end))
	f.Add([]byte(head))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := recording.Read(bytes.NewReader(data), "x.jsonl")
		if err != nil {
			if rec != nil || !strings.HasPrefix(err.Error(), "x.jsonl:") {
				t.Fatalf("got %+v, %v", rec, err)
			}
			return
		}
		if rec.Name == "" || rec.Request.Path == "" || rec.End == "" {
			t.Fatalf("half a recording: %+v", rec)
		}
		for i, p := range rec.Pieces {
			if p.At < rec.Head.At || i > 0 && p.At < rec.Pieces[i-1].At || p.At > rec.EndAt {
				t.Fatalf("piece %d at %v: time went back", i, p.At)
			}
		}
	})
}

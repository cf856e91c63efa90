package meter_test

import (
	"bytes"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// FuzzRecordJSON: what can be read is written in a form that reads the same.
func FuzzRecordJSON(f *testing.F) {
	f.Add([]byte(wholeJSON))
	f.Add([]byte(emptyJSON))
	f.Fuzz(func(t *testing.T, line []byte) {
		var r, again meter.Record
		if r.UnmarshalJSON(line) != nil {
			return
		}
		first := r.AppendJSON(nil)
		if err := again.UnmarshalJSON(first); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := again.AppendJSON(nil); !bytes.Equal(first, second) {
			t.Fatalf("written differently:\n%s\n%s", first, second)
		}
	})
}

package dialect

import (
	"strings"
	"testing"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	f := func(data string, want bool) {
		t.Helper()
		if got := Whole([]byte(data)); got != want {
			t.Errorf("%q: got %t, want %t", data, got, want)
		}
	}
	f(`{"a":[1,{"b":"}"}]}`, true)
	f(` {"a":NaN} `, true) // as Python writes it
	f(`[1]`, true)
	f(`"a"`, true)
	f(`1e3`, true)
	f(`null`, true)
	f(`{"a":1`, false)
	f(`{"a":1]`, false)
	f(`{}}`, false)
	f(`"a`, false)
	f(`x`, false)
	f(``, false)
}

// A name whose last escape makes it too long to be one of ours is passed over.
func TestKey_HalfPairAtTheLimit(t *testing.T) {
	t.Parallel()
	f := read(Chat, "", `{"`+strings.Repeat("a", 30)+`\ud83d":1,"id":"x"}`)
	if f.Skipped || string(f.ID) != "x" {
		t.Errorf("got %+v", f)
	}
}

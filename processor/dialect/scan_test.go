package dialect

import "testing"

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

package meter

import (
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	x := exchange{}
	m := x.meter()
	m.Headers(0, 200, "text/event-stream", "")
	for i, c := range []struct {
		data   string
		tokens int64
		last   time.Duration
		ok     bool
	}{
		{role(0), 0, 0, false},
		{chunk(0, text("a")), 1, 2 * time.Millisecond, true},
		{chunk(0, text("b")), 2, 3 * time.Millisecond, true},
		{final(2), 2, 3 * time.Millisecond, true},
	} {
		m.Observe(time.Duration(i+1)*time.Millisecond, []byte("data: "+c.data+"\n\n"))
		if tokens, last, ok := m.Progress(); tokens != c.tokens || last != c.last || ok != c.ok {
			t.Errorf("after %s: %d tokens, the last at %v, %v; want %d, %v, %v", c.data, tokens, last, ok, c.tokens, c.last, c.ok)
		}
	}
}

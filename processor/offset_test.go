package processor

import (
	"testing"
	"time"
)

func TestClockOffset(t *testing.T) {
	o := newOrigins()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if _, ok := o.offset(begin); ok {
		t.Error("an offset of nothing")
	}
	arrive := func(peer string, after, age time.Duration) {
		at := begin.Add(after)
		o.origin(peer, at, at.Add(-age))
	}
	arrive("a", 0, 9*time.Millisecond)
	arrive("a", time.Second, 2*time.Millisecond)
	arrive("b", time.Second, -3*time.Second) // ahead of us
	for _, c := range []struct {
		after, want time.Duration
		ok          bool
	}{{2 * time.Second, -3 * time.Second, true}, {62 * time.Second, 0, false}} {
		if got, ok := o.offset(begin.Add(c.after)); got != c.want || ok != c.ok {
			t.Errorf("after %v: %v, %v; want %v, %v", c.after, got, ok, c.want, c.ok)
		}
	}
	arrive("a", 63*time.Second, 2*time.Millisecond)
	if got, ok := o.offset(begin.Add(64 * time.Second)); got != 2*time.Millisecond || !ok {
		t.Errorf("once the other is silent: %v, %v", got, ok)
	}
}

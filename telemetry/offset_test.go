package telemetry

import (
	"testing"
	"time"
)

func TestClockOffset(t *testing.T) {
	known := true
	c := quiet()
	c.ClockOffset = func() (time.Duration, bool) { return -3 * ms, known }
	tel := open(t, c, nil)
	const series = "inferspan_envoy_clock_offset_seconds"
	if got := sample(t, scrape(t, tel, ""), series); got != -.003 {
		t.Errorf("%v s, want -0.003", got)
	}
	known = false
	if got := sample(t, scrape(t, tel, ""), series); got != -1 {
		t.Errorf("%v s where it is not known", got)
	}
	shut(t, tel)
}

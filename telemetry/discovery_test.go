package telemetry

import (
	"strings"
	"testing"
)

// onePool is the discovery of a pool.
func onePool() []Discovery {
	return []Discovery{{Pool: "default", Endpoints: 2, Current: true, Changes: 1}}
}

func TestDiscoveryMetrics(t *testing.T) {
	present := []Discovery{
		{Pool: "a", Endpoints: 3, Current: true, Changes: 2},
		{Pool: "b", Failures: 7},
	}
	c := quiet()
	c.Discovery = func() []Discovery { return present }
	tel := open(t, c, nil)
	page := scrape(t, tel, "")
	for series, want := range map[string]float64{
		`inferspan_discovery_endpoints{inferspan_pool="a"}`:      3,
		`inferspan_discovery_endpoints{inferspan_pool="b"}`:      0,
		`inferspan_discovery_current{inferspan_pool="a"}`:        1,
		`inferspan_discovery_current{inferspan_pool="b"}`:        0,
		`inferspan_discovery_changes_total{inferspan_pool="a"}`:  2,
		`inferspan_discovery_failures_total{inferspan_pool="b"}`: 7,
	} {
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	present = present[:1]
	if page = scrape(t, tel, ""); strings.Contains(page, `inferspan_pool="b"`) {
		t.Error("a pool that is no longer discovered is still shown")
	}
	shut(t, tel)
}

package telemetry

import (
	"errors"
	"strings"
	"testing"
)

func TestConfigMetrics(t *testing.T) {
	tel := open(t, quiet(), nil)
	tel.ConfigWatched("file", "tls")
	page := scrape(t, tel, "")
	f := func(series string, want float64) {
		t.Helper()
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	f(`inferspan_config_current`, 1)
	f(`inferspan_config_failures_total{inferspan_reason="tls"}`, 0)
	tel.ConfigRead("file", nil)
	tel.ConfigRead("tls", errors.New("no"))
	tel.ConfigCurrent(false)
	page = scrape(t, tel, "")
	f(`inferspan_config_current`, 0)
	f(`inferspan_config_reloads_total{inferspan_reason="file"}`, 1)
	f(`inferspan_config_failures_total{inferspan_reason="file"}`, 0)
	f(`inferspan_config_failures_total{inferspan_reason="tls"}`, 1)
	shut(t, tel)
}

// A model that a new configuration names is a label before any server took it.
func TestApply_Models(t *testing.T) {
	c := quiet()
	tel := open(t, c, nil)
	c.Models = []string{"late"}
	if err := tel.Apply(c); err != nil {
		t.Fatal(err)
	}
	r := richRecord()
	r.RequestModel.V, r.Status = "late", 404
	play(tel, r)
	worked(tel)
	if page := scrape(t, tel, ""); !strings.Contains(page, `gen_ai_request_model="late"`) {
		t.Error("the model is not named")
	}
	shut(t, tel)
}

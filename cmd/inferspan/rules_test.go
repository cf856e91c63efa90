package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor/route"
)

func parsed(t *testing.T, pool string) config.Config {
	t.Helper()
	c, err := config.Parse("rules", []byte("pools: [{name: default, "+pool+"}]"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The configuration knows the policies that there are, and what it allows is
// what routing can do.
func TestRules(t *testing.T) {
	for _, policy := range route.Policies() {
		c := parsed(t, "policy: "+policy)
		if got := rules(&c.Pools[0]).Policy; got != policy {
			t.Errorf("%s became %s", policy, got)
		}
	}
	_, err := config.Parse("rules", []byte("pools: [{name: default, policy: x}]"))
	if err == nil || !strings.HasSuffix(err.Error(), "allowed: "+strings.Join(route.Policies(), ", ")) {
		t.Errorf("%v, want all of %v allowed", err, route.Policies())
	}
	for pool, want := range map[string]route.Rules{
		"endpoints: []": {
			Policy: "least-load", LoadBound: 1.25, SlowStart: 10 * time.Second, PanicThreshold: 0.2,
			Eject: route.Eject{Failures: 5, Rate: 0.5, Base: 10 * time.Second, Max: 5 * time.Minute, Share: 0.5},
		},
		"fallback_endpoints: 8, load_bound: 100, slow_start: 1h, panic_threshold: 1, eject: {failures: 1000, failure_share: 1, time: 24h, max_time: 24h, max_share: 1}": {
			Policy: "least-load", Fallbacks: 7, LoadBound: 100, SlowStart: time.Hour, PanicThreshold: 1,
			Eject: route.Eject{Failures: 1000, Rate: 1, Base: 24 * time.Hour, Max: 24 * time.Hour, Share: 1},
		},
		"load_bound: 1, slow_start: 0s, panic_threshold: 0, eject: {failures: 0, failure_share: 0, time: 1s, max_time: 1s, max_share: 0}": {
			Policy: "least-load", LoadBound: 1, Eject: route.Eject{Base: time.Second, Max: time.Second},
		},
	} {
		c := parsed(t, pool)
		if diff := cmp.Diff(want, rules(&c.Pools[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pool, diff)
		}
		if _, err := route.New(routes(c)); err != nil {
			t.Errorf("%s: %v", pool, err)
		}
	}
}

func TestLogEjections(t *testing.T) {
	var out bytes.Buffer
	c := routes(parsed(t, "endpoints: [10.0.0.1:8000, 10.0.0.2:8000]"))
	c.Ejected = logEjections(slog.New(slog.NewTextHandler(&out, nil)))
	r, err := route.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.Done(route.Result{Pool: "default", Endpoint: "10.0.0.1:8000", Failure: route.FailedReset})
	}
	want := `level=WARN msg="endpoint ejected: it fails" endpoint=10.0.0.1:8000 pool=default failure=reset for=10s` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %s, want one line with %s", got, want)
	}
}

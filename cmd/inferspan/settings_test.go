package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/telemetry"
)

// The configuration knows the policies that telemetry has, and hands them on.
func TestKeepSettings(t *testing.T) {
	all := telemetry.KeepPolicies()
	c, err := config.Parse("keep", []byte("trace: {keep: {always: ["+strings.Join(all, ", ")+"]}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := keepSettings(c.Trace.Keep).Always; !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	if _, err := config.Parse("keep", []byte("trace: {keep: {always: [x]}}")); err == nil ||
		!strings.HasSuffix(err.Error(), "allowed: "+strings.Join(all, ", ")) {
		t.Errorf("%v, want all of %v allowed", err, all)
	}
	if got := keepSettings(config.Default().Trace.Keep); got.Always != nil || got.Share.V != 1 {
		t.Errorf("the default is %+v", got)
	}
	c, err = config.Parse("keep", []byte("trace: {keep: {always: []}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := keepSettings(c.Trace.Keep).Always; got == nil || len(got) != 0 {
		t.Errorf("an empty list became %v", got)
	}
}

// What is configured of models and of limits reaches the router.
func TestRoutes(t *testing.T) {
	c, err := config.Parse("routes", []byte(`
pools: [{name: p, shed: {in_flight: 1, queue: 2, kv_usage: 0.3, hard: {in_flight: 4, queue: 5, kv_usage: 0.6}}}]
models: [{name: m, aliases: [a], prefixes: [x/], targets: [{pool: p, model: s, weight: 7}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := routes(c)
	wantShed := route.Shed{
		Limits: route.Limits{InFlight: 1, Queue: 2, KVUsage: 0.3}, Hard: route.Limits{InFlight: 4, Queue: 5, KVUsage: 0.6},
	}
	if got.Pools[0].Shed != wantShed {
		t.Errorf("the pool sheds by %+v, want %+v", got.Pools[0].Shed, wantShed)
	}
	want := []route.Model{{
		Name: "m", Aliases: []string{"a"}, Prefixes: []string{"x/"}, Targets: []route.Target{{Pool: "p", Model: "s", Weight: 7}},
	}}
	if !reflect.DeepEqual(got.Models, want) {
		t.Errorf("the models are %+v, want %+v", got.Models, want)
	}
}

// A secret that is gone trusts nobody.
func TestTrustedSettings(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trusted config.Trusted
		want    string
	}{
		{config.Trusted{}, ""},
		{config.Trusted{Header: "x-envoy-internal", Value: "true"}, "true"},
		{config.Trusted{Header: "x-inferspan-secret", ValueFile: file}, "s3cret"},
		{config.Trusted{Header: "x-inferspan-secret", ValueFile: file + "-gone"}, ""},
	} {
		if got := trustedSettings(c.trusted, log); got.Value != c.want || got.Header != c.trusted.Header {
			t.Errorf("%+v: %+v, want the value %q", c.trusted, got, c.want)
		}
	}
}

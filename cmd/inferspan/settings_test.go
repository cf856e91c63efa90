package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/config"
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

// Package envoy_test checks the delivered configurations without running them;
// internal/integration runs them.
package envoy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/inferspan/inferspan/internal/testkit"
)

func files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.yaml")
	if err != nil || len(all) < 3 {
		t.Fatalf("configurations: %v, %v; want three or more", all, err)
	}
	return all
}

func TestEnvoyAcceptsEachFile(t *testing.T) {
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := testkit.ValidateEnvoy(ctx, file); err != nil {
				t.Error(err)
			}
		})
	}
}

// A route without these times cuts streams after 15 s, or after 5 min without
// a byte.
func TestEveryRouteHasItsTimes(t *testing.T) {
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var config any
			if err := yaml.Unmarshal(data, &config); err != nil {
				t.Fatal(err)
			}
			routes := 0
			walk(config, func(m map[string]any) {
				action, ok := m["route"].(map[string]any)
				if !ok {
					return
				}
				routes++
				if action["timeout"] != "0s" || action["idle_timeout"] != "1800s" {
					t.Errorf("route %v: timeout %v, idle_timeout %v; want 0s and 1800s", m["match"], action["timeout"], action["idle_timeout"])
				}
			})
			if routes == 0 {
				t.Error("no routes found")
			}
		})
	}
}

// xds.node is some 60 KB of text with every request.
func TestNoFileAsksForTheNode(t *testing.T) {
	for _, file := range files(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "xds.node") {
			t.Errorf("%s asks for xds.node", file)
		}
	}
}

// walk calls f for every mapping in v.
func walk(v any, f func(map[string]any)) {
	switch x := v.(type) {
	case map[string]any:
		f(x)
		for _, e := range x {
			walk(e, f)
		}
	case []any:
		for _, e := range x {
			walk(e, f)
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

func readAll(t *testing.T) []play {
	t.Helper()
	all, err := readPlays("../testkit/testdata/streams")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPlaysAskForTheirModel(t *testing.T) {
	for _, p := range readAll(t) {
		var asked struct {
			Model  string
			Stream bool
		}
		if err := json.Unmarshal(p.call.Body, &asked); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if asked.Model != p.model || asked.Stream != p.stream {
			t.Errorf("%s asks for %+v, want the model %s and stream %t", p.name, asked, p.model, p.stream)
		}
	}
}

func TestPickKeepsTheShares(t *testing.T) {
	all := []play{{name: "a", share: 1}, {name: "b"}, {name: "c", share: 3}}
	got := map[string]int{}
	for range 4000 {
		got[pick(all).name]++
	}
	if got["b"] != 0 || got["a"] == 0 || got["c"] < got["a"] {
		t.Errorf("got %v of the shares 1, 0, 3", got)
	}
}

func TestRenderEnvoyNamesEveryServer(t *testing.T) {
	config, err := os.ReadFile("../../deploy/envoy/inline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := startFleet(readAll(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, s := range fleet {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	out, err := renderEnvoy(string(config), "127.0.0.1:4711", fleet)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range fleet {
		_, port, _ := strings.Cut(s.Addr(), ":")
		if n := strings.Count(out, "port_value: "+port+"}"); n != 1 {
			t.Errorf("the server at %s stands %d times in the configuration", s.Addr(), n)
		}
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testkit.ValidateEnvoy(t.Context(), file); err != nil {
		t.Error(err)
	}
}

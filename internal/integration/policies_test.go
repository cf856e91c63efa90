//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestServersThatFailAreEjected has a server refuse connections that by its weight
// comes first. Envoy tells so, or takes another for it, three times, and then it
// is picked no more.
func TestServersThatFailAreEjected(t *testing.T) {
	for _, form := range deciding {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			dead := refusing(t)
			first := endpointLines(e.servers[0])
			e.adapt = strings.NewReplacer(first, endpointLines(dead)+first)
			e.startInferspan(fmt.Sprintf(`pools:
- name: default
  endpoints: [{address: %q, weight: 1000}, %q, %q]
  eject: {failures: 3, time: 24h, max_time: 24h}
  scrape: {enabled: false}
  health: {enabled: false}
`, dead, e.vllm[0].Addr(), e.vllm[1].Addr()))
			e.startEnvoy()
			for i := range 8 {
				x := e.mustPlay(t, chatScript("ejected", nil), chatCall())
				route, _ := e.record(t, x.id)["route"].(map[string]any)
				if (route["endpoint"] == dead) != (i < 3) || i >= 3 && x.Status != http.StatusOK {
					t.Errorf("request %d: status %d, picked was %v; want the first three for %s", i, x.Status, route["endpoint"], dead)
				}
				e.span(t, x.id)
			}
		})
	}
}

// TestPromptsKeepTheirServer has prompts that begin alike go to one server, and
// what its cache should have on the span.
func TestPromptsKeepTheirServer(t *testing.T) {
	for _, form := range deciding {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(fmt.Sprintf("pools: [{name: default, policy: prefix, endpoints: [%q, %q]}]\n", e.vllm[0].Addr(), e.vllm[1].Addr()))
			e.startEnvoy()
			seen := map[any]bool{}
			for prompt := range 12 {
				var first any
				for turn := range 2 {
					call := chatCall()
					call.Body = fmt.Appendf(nil, `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"%s turn %d"}]}`,
						strings.Repeat(fmt.Sprintf("prompt %02d ", prompt), 90), turn)
					x := e.mustPlay(t, chatScript("prefix", nil), call)
					if x.Status != http.StatusOK || x.Broken {
						t.Fatalf("status %d, broken %t", x.Status, x.Broken)
					}
					route, _ := e.record(t, x.id)["route"].(map[string]any)
					// A block of 512 bytes is 128 tokens of 4 bytes: of less than 1,024 one is whole.
					predicted := int64(0)
					if turn == 0 {
						first = route["served"]
					} else {
						predicted = 128
					}
					if route["served"] != first || route["policy"] != "prefix" {
						t.Errorf("prompt %d, turn %d: served by %v by %v, want %v by prefix", prompt, turn, route["served"], route["policy"], first)
					}
					if span := e.span(t, x.id); !testkit.HasAttrs(span.GetAttributes(), map[string]any{"inferspan.route.predicted_cached_tokens": predicted}) {
						t.Errorf("prompt %d, turn %d: want %d tokens predicted", prompt, turn, predicted)
					}
				}
				seen[first] = true
			}
			if len(seen) != 2 {
				t.Errorf("all prompts went to %v, want both servers", seen)
			}
		})
	}
}

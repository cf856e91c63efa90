//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// retrying has Envoy try again, elsewhere, what a server did not take.
const retrying = "retry_policy: {retry_on: connect-failure, num_retries: 3}"

// TestRetries has the picked server refuse connections: Envoy goes down the list
// that it was given, in order. Who served is credited, the tries are counted,
// and the time to first token is that from the first of them on.
func TestRetries(t *testing.T) {
	for _, form := range forms {
		if !routed(form) {
			continue
		}
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			dead := refusing(t)
			host, port, _ := strings.Cut(dead, ":")
			first := "{address: 127.0.0.1, port_value: " + strings.TrimPrefix(e.vllm[0].Addr(), "127.0.0.1:") + "}"
			e.adapt = strings.NewReplacer(
				"idle_timeout: 1800s}", "idle_timeout: 1800s, "+retrying+"}",
				"- endpoint: {address: {socket_address: "+first+"}}",
				fmt.Sprintf("- endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n        - endpoint: {address: {socket_address: %s}}", host, port, first),
			)
			e.startInferspan(fmt.Sprintf(`pools:
- name: default
  endpoints: [{address: %q, weight: 1000}, %q, %q]
  fallback_endpoints: 3
  eject: {failures: 0, failure_share: 0}
  scrape: {enabled: false}
  health: {enabled: false}
`, dead, e.vllm[0].Addr(), e.vllm[1].Addr()))
			e.startEnvoy()
			for range 6 {
				x := e.mustPlay(t, chatScript("retried", nil), chatCall())
				if x.Status != http.StatusOK || x.Broken {
					t.Fatalf("status %d, broken %t", x.Status, x.Broken)
				}
				up := e.upstream(t, x.id)
				list := strings.Split(up.Header.Get("x-gateway-destination-endpoint"), ",")
				if len(list) != 3 || list[0] != dead {
					t.Fatalf("the list is %q, want %q before two others", list, dead)
				}
				r := e.record(t, x.id)
				route, _ := r["route"].(map[string]any)
				if route["endpoint"] != dead || route["served"] != list[1] || route["attempts"] != 2.0 {
					t.Errorf("picked %v, served %v, %v attempts; want %s, then %s, the second of the list", route["endpoint"], route["served"], route["attempts"], dead, list[1])
				}
				if !e.servedBy(list[1], x.id) {
					t.Errorf("%s did not get the request", list[1])
				}
				if span := e.span(t, x.id); !testkit.HasAttrs(span.GetAttributes(), map[string]any{
					"inferspan.endpoint": dead, "inferspan.served": list[1], "inferspan.attempts": int64(2),
				}) {
					t.Errorf("the span says %v", span.GetAttributes())
				}
			}
		})
	}
}

// servedBy tells whether the server at addr got the request with this id.
func (e *edge) servedBy(addr, id string) bool {
	for _, v := range e.vllm {
		if v.Addr() == addr {
			return len(v.Received(func(r testkit.Received) bool { return r.Header.Get("x-request-id") == id })) == 1
		}
	}
	return false
}

// TestOriginalDestination has an Envoy without a list of its own go where the
// metadata says, as gateways do that find endpoints by the picker alone.
func TestOriginalDestination(t *testing.T) {
	for _, form := range forms {
		if !routed(form) {
			continue
		}
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.adapt = originalDestination{}
			e.startInferspan(e.config("default"))
			e.startEnvoy()
			seen := map[string]int{}
			for range 8 {
				x := e.mustPlay(t, chatScript("dst", nil), chatCall())
				if x.Status != http.StatusOK || x.Broken {
					t.Fatalf("status %d, broken %t", x.Status, x.Broken)
				}
				route, _ := e.record(t, x.id)["route"].(map[string]any)
				picked, _ := route["endpoint"].(string)
				if route["served"] != picked || !e.servedBy(picked, x.id) {
					t.Errorf("picked %v, served %v", picked, route["served"])
				}
				seen[picked]++
			}
			if len(seen) != 2 {
				t.Errorf("the requests went to %v, want both servers", seen)
			}
			t.Run("spoofed destination", e.spoofed)
		})
	}
}

// originalDestination replaces the cluster vllm of a configuration by one that
// connects to where the metadata says.
type originalDestination struct{}

func (originalDestination) Replace(config string) string {
	const cluster = "\n  - name: vllm\n"
	before, rest, _ := strings.Cut(config, cluster)
	_, after, _ := strings.Cut(rest, "\n\n")
	return before + cluster + `    type: ORIGINAL_DST
    connect_timeout: 1s
    lb_policy: CLUSTER_PROVIDED
    original_dst_lb_config:
      metadata_key: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}

` + after
}

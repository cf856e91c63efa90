//go:build integration

package integration

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// retrying has Envoy try again, elsewhere, what a server did not take.
const retrying = "retry_policy: {retry_on: connect-failure, num_retries: 3}"

// TestRetries has the picked server refuse connections: Envoy goes down the list
// that it was given, in order. Who served is credited, and the tries are counted.
func TestRetries(t *testing.T) {
	for _, form := range deciding {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			dead := refusing(t)
			first := endpointLines(e.servers[0])
			e.adapt = strings.NewReplacer("idle_timeout: 1800s}", "idle_timeout: 1800s, "+retrying+"}", first, endpointLines(dead)+first)
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

// TestTimesBeginAtTheFirstTry has the picked server keep a request for a while and
// hang up. Another serves it, and the client has waited for both.
func TestTimesBeginAtTheFirstTry(t *testing.T) {
	const kept = 300 * time.Millisecond
	for _, form := range []string{inline, split} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.servers[0] = hangsUpAfter(t, kept)
			const tries = "\n                    num_retries: 2"
			e.adapt = strings.NewReplacer("retry_on: connect-failure,refused-stream"+tries, "retry_on: reset"+tries)
			e.startInferspan(fmt.Sprintf(`pools:
- name: default
  endpoints: [{address: %q, weight: 1000}, %q]
  fallback_endpoints: 2
  scrape: {enabled: false}
  health: {enabled: false}
`, e.servers[0], e.servers[1]))
			e.startEnvoy()
			x := e.mustPlay(t, chatScript("retried", nil), chatCall())
			if x.Status != http.StatusOK || x.Broken {
				t.Fatalf("status %d, broken %t", x.Status, x.Broken)
			}
			r := e.record(t, x.id)
			route, _ := r["route"].(map[string]any)
			if route["endpoint"] != e.servers[0] || route["served"] != e.servers[1] || route["attempts"] != 2.0 {
				t.Errorf("the route is %v, want %s, then %s", route, e.servers[0], e.servers[1])
			}
			first, _ := r["first_token_us"].(float64)
			if least := float64(kept.Microseconds()); first < least {
				t.Errorf("the first token came after %v µs, want %v at least", first, least)
			}
		})
	}
}

// hangsUpAfter is the address of a server that closes each connection so long
// after something came.
func hangsUpAfter(t *testing.T, d time.Duration) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				<-time.After(d)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-ended })
	return ln.Addr().String()
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
	for _, form := range deciding {
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

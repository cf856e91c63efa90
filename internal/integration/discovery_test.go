//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/internal/testkit/zone"
)

// TestDiscoveryByName has Inferspan and Envoy follow one name, as that of a
// headless Service: requests go to the servers that it has, streams to one that
// has left go on to their end.
func TestDiscoveryByName(t *testing.T) {
	for _, form := range deciding {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			_, port, err := net.SplitHostPort(e.servers[0])
			e.must(err)
			// The name has one port, so the second server has another address.
			second, err := testkit.NewVLLM(testkit.VLLMOptions{Addr: "127.0.0.2:" + port, Choose: e.choose, Keep: 1000})
			e.must(err)
			t.Cleanup(func() { _ = second.Close() })
			e.vllm[1], e.servers[1] = second, second.Addr()
			names := zone.Serve(t)
			is := func(reply dns.HandlerFunc) { names.Set("vllm.test. A", reply) }
			is(zone.Records("vllm.test. 0 A 127.0.0.1"))
			_, dnsPort, err := net.SplitHostPort(names.Addr)
			e.must(err)
			e.adapt = strings.NewReplacer(
				"- name: vllm\n    type: STATIC\n", `- name: vllm
    cluster_type:
      name: envoy.cluster.dns
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster
        dns_refresh_rate: 0.1s
        dns_lookup_family: V4_ONLY
        typed_dns_resolver_config:
          name: envoy.network.dns_resolver.cares
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
            resolvers: [{socket_address: {address: 127.0.0.1, port_value: `+dnsPort+`}}]
            dns_resolver_options: {no_default_search_domain: true}
`,
				endpointLines("127.0.0.1:"+port, "127.0.0.2:"+port), endpointLines("vllm.test:"+port),
			)
			e.startInferspan(fmt.Sprintf(`pools:
- name: default
  discover: {dns: {name: vllm.test., port: %s, server: %q, min_interval: 100ms, keep_absent: 1s}}
  scrape: {enabled: false}
  health: {enabled: false}
`, port, names.Addr))
			e.startEnvoy()
			e.goesTo(t, 0)

			s, call := chatScript("named", nil), chatCall()
			gate := make(chan struct{})
			s.Pieces[1].After = gate
			call.OnPiece = func(body []byte) {
				if bytes.Equal(body, s.Pieces[0].Data) {
					is(zone.Records("vllm.test. 0 A 127.0.0.2"))
					e.goesTo(t, 1)
					close(gate)
				}
			}
			if x := e.mustPlay(t, s, call); x.Status != http.StatusOK || x.Broken || !bytes.Equal(x.Body, s.Body()) {
				t.Errorf("the stream under way: status %d, broken %t, %d of %d bytes", x.Status, x.Broken, len(x.Body), len(s.Body()))
			}
			// What can't be told changes nothing.
			is(zone.Code(dns.RcodeServerFailure))
			line := e.inferspanSays(t, "endpoints can't be discovered")
			if !strings.Contains(line, "it answers SERVFAIL") {
				t.Errorf("the log says %s", line)
			}
			e.goesTo(t, 1)
			// That there is nothing empties the pool, after a while.
			is(zone.Code(dns.RcodeNameError))
			e.inferspanSays(t, `"effect":"none is left"`)
			x := e.mustPlay(t, chatScript("nowhere", nil), chatCall())
			if x.Status != http.StatusServiceUnavailable || x.Header.Get("x-inferspan-reason") != "no_endpoint" {
				t.Errorf("a name that is gone: status %d, reason %q", x.Status, x.Header.Get("x-inferspan-reason"))
			}
			e.unmeasured(x.id)
		})
	}
}

// goesTo waits until requests are routed to, and served by, the server i.
func (e *edge) goesTo(t *testing.T, i int) {
	t.Helper()
	var route map[string]any
	for late := time.Now().Add(patience); time.Now().Before(late); {
		x := e.mustPlay(t, chatScript("goes", nil), chatCall())
		if x.Status != http.StatusOK || x.Broken {
			t.Fatalf("status %d, broken %t", x.Status, x.Broken)
		}
		route, _ = e.record(t, x.id)["route"].(map[string]any)
		if route["endpoint"] == e.servers[i] && route["served"] == e.servers[i] {
			return
		}
	}
	t.Fatalf("the last request was routed by %v, want to %s", route, e.servers[i])
}

// inferspanSays waits for a line of the log with text, and returns it.
func (e *edge) inferspanSays(t *testing.T, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line, err := e.inferspan.WaitLine(ctx, func(line string) bool { return strings.Contains(line, text) })
	e.must(err)
	return line
}

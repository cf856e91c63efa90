//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestReadme puts what the README tells to add into an Envoy that has nothing
// else, and looks a request up.
func TestReadme(t *testing.T) {
	e := newEdge(t, "readme")
	e.startInferspan(e.config("default"))
	root, err := testkit.ModuleRoot()
	e.must(err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	e.must(err)
	_, after, _ := strings.Cut(string(readme), "readme_test.go runs this. -->\n```yaml\n")
	snippet, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("README.md has no Envoy configuration where this test looks for it")
	}
	if n := strings.Count(snippet, "\n"); n > 20 {
		t.Errorf("the README's configuration has %d lines, want 20 at most", n)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "envoy.yaml")
	e.must(os.WriteFile(path, bareEnvoy(t, snippet, e.listen, e.vllm[0].Addr()), 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e.envoy, err = testkit.StartEnvoy(ctx, path, dir)
	e.must(err)
	t.Cleanup(e.envoy.Kill)
	e.addr, err = e.envoy.ListenerAddr(ctx, "inference")
	e.must(err)
	e.client = testkit.NewClient(e.addr, false)
	t.Cleanup(e.client.Close)

	x := e.mustPlay(t, chatScript("readme", nil), chatCall())
	if r := e.record(t, x.id); r["outcome"] != "ok" || r["first_token_us"] == nil {
		t.Errorf("record %v, want the outcome ok and a first token", r)
	}
}

// bareEnvoy is the smallest configuration of an Envoy, with the filters and
// clusters of the snippet.
func bareEnvoy(t *testing.T, snippet, processor, vllm string) []byte {
	t.Helper()
	var add struct {
		Filters  []any `yaml:"http_filters"`
		Clusters []any `yaml:"clusters"`
	}
	_, port, err := net.SplitHostPort(processor)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(strings.Replace(snippet, "port_value: 9002", "port_value: "+port, 1)), &add); err != nil {
		t.Fatalf("reading the README's configuration: %v", err)
	}
	host, vllmPort, err := net.SplitHostPort(vllm)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, bare, host, vllmPort), &config); err != nil {
		t.Fatal(err)
	}
	static := config["static_resources"].(map[string]any)
	static["clusters"] = append(static["clusters"].([]any), add.Clusters...)
	hcm := static["listeners"].([]any)[0].(map[string]any)["filter_chains"].([]any)[0].(map[string]any)["filters"].([]any)[0].(map[string]any)["typed_config"].(map[string]any)
	hcm["http_filters"] = append(add.Filters, hcm["http_filters"].([]any)...)
	out, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const bare = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: inference
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: inference
          preserve_external_request_id: true
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          route_config:
            virtual_hosts:
            - {name: inference, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: vllm, timeout: 0s}}]}
  clusters:
  - name: vllm
    load_assignment: {cluster_name: vllm, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}
`

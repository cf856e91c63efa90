//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestMirror mirrors requests as the README beside the configurations says: the
// mirror gets none of the headers that tie a request to its trace and endpoint,
// and an exchange has one record.
func TestMirror(t *testing.T) {
	for _, form := range []string{inline, split} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			mirror, err := testkit.NewVLLM(testkit.VLLMOptions{Choose: e.choose, Keep: 10})
			e.must(err)
			t.Cleanup(func() { _ = mirror.Close() })
			e.adapt = strings.NewReplacer(
				"                route:\n                  cluster: vllm\n",
				"                route:\n                  cluster: vllm\n                  request_mirror_policies: [{cluster: mirror}]\n",
				"  clusters:\n", "  clusters:\n"+mirrorCluster(t, mirror.Addr()))
			e.startInferspan(e.config("default"))
			e.startEnvoy()
			x := e.mustPlay(t, chatScript("mirrored", nil), chatCall())
			copied, err := mirror.WaitReceived(t.Context(), func(r testkit.Received) bool { return r.Header.Get("x-request-id") == x.id })
			e.must(err)
			up := e.upstream(t, x.id)
			e.checkContext(t, e.span(t, x.id), up)
			if !bytes.Equal(copied.Body, up.Body) {
				t.Errorf("the mirror got %s", copied.Body)
			}
			for _, name := range []string{"traceparent", "tracestate", "x-gateway-destination-endpoint", "x-inferspan-pool", "x-inferspan-ctx"} {
				if v := copied.Header.Get(name); v != "" {
					t.Errorf("the mirror got %s: %s", name, v)
				}
			}
			if r := e.record(t, x.id); r["outcome"] != "ok" {
				t.Errorf("outcome %v", r["outcome"])
			}
			t.Run("all matched", e.allMatched)
			if n := e.spans()[x.id]; n != 1 {
				t.Errorf("%d spans, want 1", n)
			}
		})
	}
}

// mirrorCluster is a cluster with the settings of the README.
func mirrorCluster(t *testing.T, addr string) string {
	t.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "deploy", "envoy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "<!-- TestMirror runs this. -->\n```yaml\n")
	snippet, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the README has no cluster of a mirror where this test looks for it")
	}
	var settings strings.Builder
	for line := range strings.Lines(snippet) {
		settings.WriteString("    " + line)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`  - name: mirror
    type: STATIC
%s    load_assignment:
      cluster_name: mirror
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, settings.String(), host, port)
}

//go:build integration

package integration

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestAccessLogFormats writes the logs that the README beside the configurations
// shows, and wants a request's trace in each of them.
func TestAccessLogFormats(t *testing.T) {
	e := newEdge(t, inline)
	root, err := testkit.ModuleRoot()
	e.must(err)
	readme, err := os.ReadFile(filepath.Join(root, "deploy", "envoy", "README.md"))
	e.must(err)
	var loggers strings.Builder
	for i, part := range strings.Split(string(readme), "<!-- TestAccessLogFormats runs this. -->\n```yaml\n") {
		if i == 0 {
			continue
		}
		snippet, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(snippet) {
			loggers.WriteString("          " + line)
		}
	}
	if n := strings.Count(loggers.String(), "@type"); n != 2 {
		t.Fatalf("the README shows %d formats where this test looks for them, want 2", n)
	}
	e.adapt = strings.NewReplacer(
		"          access_log:\n", "          access_log:\n"+loggers.String(),
		"  clusters:\n", "  clusters:\n"+collectorCluster(t, e.sink.Addr()))
	e.startInferspan(e.config("default"))
	e.startEnvoy()
	x := e.mustPlay(t, chatScript("logged", nil), chatCall())
	span := e.span(t, x.id)
	trace, id := hex.EncodeToString(span.GetTraceId()), hex.EncodeToString(span.GetSpanId())

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = e.envoy.WaitLine(ctx, func(line string) bool {
		return strings.Contains(line, " "+x.id+" "+trace+" tiny POST /v1/chat/completions 200 - via_upstream ")
	})
	if err != nil {
		t.Errorf("the line of text: %v\n%s", err, e.envoy.Log())
	}
	err = testkit.Poll(ctx, func(context.Context) error {
		for _, l := range e.sink.Logs() {
			if testkit.HasAttrs(l.GetAttributes(), map[string]any{
				"trace_id": trace, "span_id": id, "gen_ai.request.model": "tiny", "inferspan.request.id": x.id,
				"http.response.status_code": "200", "envoy.response_code_details": "via_upstream",
			}) && l.GetBody().GetStringValue() == "POST /v1/chat/completions 200 -" {
				return nil
			}
		}
		return errors.New("the request is not in the log")
	})
	if err != nil {
		t.Errorf("over OTLP: %v: %v", err, e.sink.Logs())
	}
}

// collectorCluster is the cluster of a collector at addr.
func collectorCluster(t *testing.T, addr string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`  - name: otel_collector
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: otel_collector
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, host, port)
}

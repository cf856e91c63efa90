package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/google/go-cmp/cmp"
)

const (
	read    = "configuration read"
	refused = "the configuration can't be used, what ran before runs on"
	waits   = "the configuration needs a restart"
)

// reload has s read everything anew, and returns the line that tells of it.
func (s *served) reload(t *testing.T, text, msg string) logLine {
	t.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	return s.logs.await(t, msg)
}

// metric wants lines on the page of metrics.
func (s *served) metric(t *testing.T, want ...string) {
	t.Helper()
	_, page := ask(t, s.admin+"/metrics")
	for _, line := range want {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no %s on the page", line)
		}
	}
}

// routed opens a stream, asks and returns the endpoint.
func routed(t *testing.T, conn *grpc.ClientConn) (extStream, string) {
	t.Helper()
	stream := openStream(t, conn)
	stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
	return stream, decided(stream)
}

func decided(s extStream) string {
	for _, o := range s.ask(requestBody(askLlama)).GetRequestBody().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if o.GetHeader().GetKey() == "x-gateway-destination-endpoint" {
			return string(o.GetHeader().GetRawValue())
		}
	}
	return ""
}

// A configuration is taken while a stream is under way; a bad one is not.
func TestReload(t *testing.T) {
	s := startServe(t, atAnyPort+onePool)
	conn := dial(t, s.listen, insecure.NewCredentials())
	under := openStream(t, conn)
	under.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))

	line := s.reload(t, "pools: 7\nlisten: 1\n", refused)
	if faults := fmt.Sprint(line["faults"]); !strings.Contains(faults, "inferspan.yaml:1: pools: is ") || !strings.Contains(faults, ":2: listen: ") {
		t.Errorf("the faults are %s", faults)
	}
	s.metric(t, `inferspan_config_failures_total{inferspan_reason="file"} 1`, `inferspan_config_current 0`)
	if _, to := routed(t, conn); to != "127.0.0.1:8001" {
		t.Errorf("after a bad file, routed to %q", to)
	}

	// A file that is being written is empty for a moment.
	line = s.reload(t, "\n", refused)
	if faults := fmt.Sprint(line["faults"]); !strings.Contains(faults, "inferspan.yaml: is empty") {
		t.Errorf("the faults are %s", faults)
	}
	s.metric(t, `inferspan_config_failures_total{inferspan_reason="file"} 2`)
	if _, to := routed(t, conn); to != "127.0.0.1:8001" {
		t.Errorf("after an empty file, routed to %q", to)
	}

	const other = "pools: [{name: default, endpoints: [127.0.0.1:8009]}]\nlog: {level: debug}\n"
	line = s.reload(t, "admin: 127.0.0.1:1\nrecord: {every: 2}\n"+atAnyPort+other, waits)
	if diff := cmp.Diff([]any{"admin", "record.every"}, line["keys"]); diff != "" {
		t.Errorf("what needs a restart (-want +got):\n%s", diff)
	}
	s.metric(t, `inferspan_config_reloads_total{inferspan_reason="file"} 1`, `inferspan_config_current 0`)
	if _, to := routed(t, conn); to != "127.0.0.1:8009" {
		t.Errorf("after a new file, routed to %q", to)
	}

	const slo = "trace: {detail: summary, keep: {share: 0}}\nslo: [{name: fast, ttft: 1s, target: 0.5}]\n"
	line = s.reload(t, "admin: 127.0.0.1:0\n"+atAnyPort+other+slo+"drain_timeout: 0s\n", read)
	if diff := cmp.Diff([]any{"drain_timeout", "trace.detail", "trace.keep", "slo"}, line["applied"]); diff != "" {
		t.Errorf("what took effect (-want +got):\n%s", diff)
	}
	s.metric(t, `inferspan_config_reloads_total{inferspan_reason="file"} 2`, `inferspan_config_current 1`,
		`inferspan_slo_target_ratio{inferspan_slo_name="fast"} 0.5`)

	if to := decided(under); to != "127.0.0.1:8009" {
		t.Errorf("the stream under way was routed to %q", to)
	}
	under.ask(responseHeaders())
	under.ask(responseBody(oneToken, false))
	under.ask(responseBody(endMark, true))
	s.stop()
	if line := s.logs.await(t, "drain"); line["timeout"] != "0s" {
		t.Errorf("drains for %v", line["timeout"])
	}
}

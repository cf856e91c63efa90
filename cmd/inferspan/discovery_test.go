package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/discover"
	"github.com/inferspan/inferspan/processor/route/kube"
)

// A pool that is found in a file: nothing is ready before it is known, it
// follows the file, and it stays over a change of the configuration.
func TestServe_Discovers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints.yaml")
	pool := "pools: [{name: default, discover: {file: {path: " + file + "}}, scrape: {enabled: false}, health: {enabled: false}}]\n"
	s := launchServe(t, atAnyPort+pool, "wait for endpoints")
	conn := dial(t, s.listen, insecure.NewCredentials())
	if got := healthOf(t, conn, "readiness"); got != "NOT_SERVING" {
		t.Errorf("readiness is %s before the endpoints are known", got)
	}
	if got := healthOf(t, conn, "liveness"); got != "SERVING" {
		t.Errorf("liveness is %s", got)
	}
	want := "not ready: pool default, file " + file + ": read the endpoints: open " + file
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := testkit.Poll(ctx, func(context.Context) error { // it may not have looked yet
		code, body := ask(t, s.admin+"/readyz")
		if code != 503 || !strings.HasPrefix(body, "not ready: pool default, file "+file+": ") {
			t.Fatalf("/readyz: %d %q, want 503 %q", code, body, want)
		}
		if !strings.HasPrefix(body, want) {
			return fmt.Errorf("/readyz: %q, want %q", body, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.metric(t, `inferspan_discovery_current{inferspan_pool="default"} 0`, `inferspan_discovery_endpoints{inferspan_pool="default"} 0`)

	put := func(text, msg string) {
		t.Helper()
		next := filepath.Join(filepath.Dir(file), "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
		s.logs.await(t, msg)
	}
	put("- 127.0.0.1:8001\n", "ready")
	if code, body := ask(t, s.admin+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
	under, to := routed(t, conn)
	if to != "127.0.0.1:8001" {
		t.Errorf("routed to %q", to)
	}
	put(`["127.0.0.1:80`, "endpoints can't be discovered")
	put(`["127.0.0.1:8002"]`, "endpoints are discovered again")
	if _, to := routed(t, conn); to != "127.0.0.1:8002" {
		t.Errorf("after the change, routed to %q", to)
	}
	s.reload(t, "admin: 127.0.0.1:0\n"+atAnyPort+pool+"drain_timeout: 1s\n", read)
	if _, to := routed(t, conn); to != "127.0.0.1:8002" {
		t.Errorf("after a change of the configuration, routed to %q", to)
	}
	s.metric(t, `inferspan_discovery_current{inferspan_pool="default"} 1`, `inferspan_discovery_endpoints{inferspan_pool="default"} 1`,
		`inferspan_discovery_changes_total{inferspan_pool="default"} 2`, `inferspan_discovery_failures_total{inferspan_pool="default"} 2`)
	// What was under way when its endpoint left goes on.
	under.ask(responseHeaders())
	under.ask(responseBody(oneToken, false))
	under.ask(responseBody(endMark, true))

	s.reload(t, "admin: 127.0.0.1:0\n"+atAnyPort+onePool, read)
	if _, to := routed(t, conn); to != "127.0.0.1:8001" {
		t.Errorf("with an endpoint of its own, the pool was routed to %q", to)
	}
}

func TestSources(t *testing.T) {
	c, err := config.Load("../../internal/config/testdata/valid-discover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const k = "/etc/inferspan/kubeconfig"
	want := map[string]discover.Source{
		"file": discover.File{Path: "/etc/inferspan/endpoints.yaml", Format: listed{}},
		"dns": discover.DNS{
			Name: "vllm.default.svc.cluster.local", Record: "A", Port: 8000,
			MinInterval: time.Second, MaxInterval: 5 * time.Minute, KeepAbsent: 30 * time.Second, KeepFailed: time.Hour,
		},
		"srv": discover.DNS{
			Name: "_http._tcp.vllm.", Record: "SRV", Server: "127.0.0.1:8600",
			MinInterval: 5 * time.Second, MaxInterval: time.Minute, KeepFailed: time.Minute,
		},
		"pool":    kube.InferencePool{Name: "llama", Namespace: "ai", Kubeconfig: k},
		"service": kube.Service{Name: "vllm", Port: "http", Kubeconfig: k},
	}
	got := sources(c)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if !reflect.DeepEqual(got, sources(c)) {
		t.Error("the same configuration has other sources: each reload would run them anew")
	}
	for _, p := range routes(c).Pools {
		wantSource := ""
		if s := want[p.Name]; s != nil {
			wantSource = s.String()
		}
		if p.Source != wantSource {
			t.Errorf("the pool %s has the source %q, want %q", p.Name, p.Source, wantSource)
		}
	}
	if diff := cmp.Diff([]route.Endpoint{{Address: "10.0.0.1:8000", Weight: 1}, {Address: "10.0.0.2:8000", Weight: 3}}, routes(c).Pools[0].Endpoints); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	wantLog := map[string]any{
		"weighted": 2, "file": "file /etc/inferspan/endpoints.yaml", "dns": "dns A vllm.default.svc.cluster.local port 8000",
		"srv": "dns SRV _http._tcp.vllm. at 127.0.0.1:8600", "pool": "inference_pool ai/llama by " + k, "service": "service vllm port http by " + k,
	}
	if diff := cmp.Diff(wantLog, poolsOf(c)); diff != "" {
		t.Errorf("as logged (-want +got):\n%s", diff)
	}
}

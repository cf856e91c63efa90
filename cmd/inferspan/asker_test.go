package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/scrape"
)

// shows waits until the page of metrics has a line, or, with none, has not.
func (s *served) shows(t *testing.T, line string, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		page, err := testkit.Get(ctx, s.admin+"/metrics")
		if err == nil && strings.Contains(string(page), "\n"+line) != want {
			err = fmt.Errorf("%q on the page: %v, want %v", line, !want, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a server says of itself is on the page of metrics, as long as it is
// asked.
func TestServe_AsksEndpoints(t *testing.T) {
	vllm, err := testkit.NewVLLM(testkit.VLLMOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = vllm.Close() }()
	labels := fmt.Sprintf(`{inferspan_endpoint=%q,inferspan_pool="default"}`, vllm.Addr())
	pools := func(scrape, health string) string {
		return fmt.Sprintf("pools: [{name: default, endpoints: [%q], scrape: {%s}, health: {%s}}]\n", vllm.Addr(), scrape, health)
	}
	s := startServe(t, atAnyPort+pools("interval: 50ms", "interval: 100ms, failures: 2"))
	s.shows(t, "inferspan_endpoint_queue"+labels+" 0\n", true)
	s.shows(t, "inferspan_endpoint_kv_usage_ratio"+labels+" 0\n", true)
	s.shows(t, "inferspan_endpoint_healthy"+labels+" 1\n", true)
	s.shows(t, "inferspan_endpoint_inflight"+labels+" 0\n", true)

	vllm.SetHealth(http.StatusServiceUnavailable)
	s.logs.await(t, "an endpoint is unhealthy")
	s.shows(t, "inferspan_endpoint_healthy"+labels+" 0\n", true)

	s.reload(t, "admin: 127.0.0.1:0\n"+atAnyPort+pools("enabled: false", "enabled: false"), read)
	s.shows(t, "inferspan_endpoint_healthy"+labels+" 1\n", true)
	s.shows(t, "inferspan_endpoint_queue", false)

	s.reload(t, "admin: 127.0.0.1:0\n"+atAnyPort+pools("path: /nothing", "path: /nothing"), read)
	s.logs.await(t, "an endpoint has no page of metrics, its load is not known but for our own requests")
	s.shows(t, "inferspan_endpoint_healthy"+labels+" 1\n", true)
	s.stop()
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A server that is full by its own account gets nothing, though this process
// has sent it nothing.
func TestServe_RoutesByWhatServersSay(t *testing.T) {
	var servers [2]*testkit.VLLM
	for i := range servers {
		v, err := testkit.NewVLLM(testkit.VLLMOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close() })
		servers[i] = v
	}
	servers[0].SetQueue(50)
	s := startServe(t, fmt.Sprintf("%spools: [{name: default, endpoints: [%q, %q]}]\n", atAnyPort, servers[0].Addr(), servers[1].Addr()))
	for i, queue := range []int{50, 0} {
		s.shows(t, fmt.Sprintf("inferspan_endpoint_queue{inferspan_endpoint=%q,inferspan_pool=\"default\"} %d\n", servers[i].Addr(), queue), true)
	}
	conn := dial(t, s.listen, insecure.NewCredentials())
	for range 10 {
		if _, to := routed(t, conn); to != servers[1].Addr() {
			t.Errorf("routed to %q, which has a queue; want %q", to, servers[1].Addr())
		}
	}
}

func TestTargets(t *testing.T) {
	c, err := config.Parse("targets", []byte(`
pools:
  - {name: b, endpoints: [10.0.0.1:8000, 10.0.0.2:8000], scrape: {interval: 1s, port: 9100}, health: {enabled: false}}
  - {name: a, endpoints: [10.0.0.2:8000, 10.0.0.3:8000], scrape: {enabled: false}, health: {failures: 7}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := route.New(routes(c))
	if err != nil {
		t.Fatal(err)
	}
	health := scrape.Page{Interval: time.Second, Timeout: 5 * time.Second, Path: "/health"}
	want := []scrape.Target{
		{Pool: "b", Address: "10.0.0.1:8000", Failures: 3, Metrics: scrape.Page{Interval: time.Second, Timeout: time.Second, Path: "/metrics", Port: 9100}},
		{Pool: "a", Address: "10.0.0.2:8000", Failures: 7, Health: health},
		{Pool: "a", Address: "10.0.0.3:8000", Failures: 7, Health: health},
	}
	if diff := cmp.Diff(want, newAsker(c.Pools, r, nil, nil).targets()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

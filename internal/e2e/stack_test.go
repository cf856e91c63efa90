//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// patience bounds every wait for something that should happen soon.
const patience = 60 * time.Second

// The two ways in which metrics reach Prometheus, by the job that they come
// under.
const (
	overOTLP = "inferspan"
	scraped  = "inferspan-metrics"
)

// stack is everything, running.
type stack struct {
	root       string // of the module
	begun      time.Time
	sink       *testkit.Sink // where the collector sends traces
	prometheus *testkit.Prometheus
	config     string             // Prometheus's, as it runs
	collector  *testkit.Collector // what Inferspan sends to
	gateway    *testkit.Collector // with two tiers, the second
	jaeger     *testkit.Jaeger    // with two tiers, where the gateway sends
	binary     string             // Inferspan's
	inferspan  *testkit.Inferspan
	client     *testkit.Client

	mu      sync.Mutex
	scripts map[string]testkit.Script // by request id
	serial  int
}

// layout is how the collectors stand.
type layout struct {
	// gateway sets the environment of a second tier of collectors, which sends to
	// Jaeger; nil: one collector, which sends to the sink.
	gateway []string
}

// start starts everything, each part with its delivered configuration.
func start(t *testing.T, l layout) *stack {
	t.Helper()
	root, err := testkit.ModuleRoot()
	must(t, err)
	s := &stack{root: root, begun: time.Now(), scripts: map[string]testkit.Script{}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	s.sink, err = testkit.NewSink()
	must(t, err)
	t.Cleanup(s.sink.Close)

	prometheus, err := testkit.FreeAddr()
	must(t, err)
	s.startCollectors(ctx, t, l.gateway, testkit.PrometheusOTLP(prometheus))

	var vllm [2]string
	for i := range vllm {
		v, err := testkit.NewVLLM(testkit.VLLMOptions{Choose: s.choose, FreshIDs: true})
		must(t, err)
		t.Cleanup(func() { _ = v.Close() })
		vllm[i] = v.Addr()
	}
	s.binary, err = testkit.BuildInferspan(t.Context(), t.TempDir())
	must(t, err)
	s.inferspan, err = testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: s.binary, Dir: t.TempDir(),
		Config: fmt.Sprintf("pools:\n- {name: default, endpoints: [%q, %q]}\n", vllm[0], vllm[1]),
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + s.collector.Addr,
			"OTEL_BSP_SCHEDULE_DELAY=100",
			"OTEL_METRIC_EXPORT_INTERVAL=1000",
		},
	})
	must(t, err)
	s.inferspan.KillAtEnd(t)

	s.config = s.render(t, "deploy/prometheus/prometheus.yml", map[string]string{
		"127.0.0.1:9464":       s.inferspan.Admin,
		"../../dashboards":     filepath.Join(root, "dashboards"),
		"scrape_interval: 15s": "scrape_interval: 1s",
		"scrape_timeout: 10s":  "scrape_timeout: 1s",
	})
	s.prometheus, err = testkit.StartPrometheus(ctx, prometheus, s.config, t.TempDir())
	must(t, err)
	s.prometheus.KillAtEnd(t)

	envoy, err := testkit.StartDelivered(ctx, "inline.yaml", testkit.EnvoyAddrs{Processor: s.inferspan.Listen, VLLM: vllm}, t.TempDir())
	must(t, err)
	envoy.KillAtEnd(t)
	addr, err := envoy.ListenerAddr(ctx, "inference")
	must(t, err)
	s.client = testkit.NewClient(addr, false)
	t.Cleanup(s.client.Close)
	return s
}

// startCollectors starts one collector, or two tiers of them.
func (s *stack) startCollectors(ctx context.Context, t *testing.T, gateway []string, metrics string) {
	t.Helper()
	o := testkit.CollectorOptions{
		Config: filepath.Join(s.root, "deploy/collector/collector.yaml"), Dir: t.TempDir(),
		Traces: s.sink.Addr(), Metrics: metrics,
	}
	var err error
	if gateway != nil {
		s.jaeger, err = testkit.StartJaeger(ctx)
		must(t, err)
		s.jaeger.KillAtEnd(t)
		s.gateway, err = testkit.StartCollector(ctx, testkit.CollectorOptions{
			Config: filepath.Join(s.root, "deploy/collector/gateway.yaml"), Dir: t.TempDir(),
			Traces: s.jaeger.OTLP, Env: gateway,
		})
		must(t, err)
		s.gateway.KillAtEnd(t)
		host, port, err := net.SplitHostPort(s.gateway.Addr)
		must(t, err)
		o.Config = filepath.Join(s.root, "deploy/collector/agent.yaml")
		o.Env = []string{"GATEWAY_HOST=" + host, "GATEWAY_PORT=" + port}
	}
	s.collector, err = testkit.StartCollector(ctx, o)
	must(t, err)
	s.collector.KillAtEnd(t)
}

// render writes a delivered file with some of it replaced, each of which must
// stand in it once, and returns its path.
func (s *stack) render(t *testing.T, file string, replace map[string]string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, file))
	must(t, err)
	text := string(b)
	for from, to := range replace {
		if n := strings.Count(text, from); n != 1 {
			t.Fatalf("%q stands %d times in %s, want once", from, n, file)
		}
		text = strings.Replace(text, from, to, 1)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// choose answers a request by the script of its request id.
func (s *stack) choose(r *http.Request, _ []byte) (testkit.Script, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	script, ok := s.scripts[r.Header.Get("x-request-id")]
	return script, ok
}

// recording is a recorded exchange with what is true of it.
type recording struct {
	call   testkit.Call
	script testkit.Script
	truth  truth
}

// truth is what the test needs to know of an exchange.
type truth struct {
	Outcome      string   `json:"outcome"`
	OutputTokens float64  `json:"output_tokens"`
	OutputSource string   `json:"output_source"`
	PromptTokens float64  `json:"prompt_tokens"`
	FirstToken   *float64 `json:"first_token_us"`
}

// recordings reads the named ones.
func (s *stack) recordings(t *testing.T, names ...string) []recording {
	t.Helper()
	dir := filepath.Join(s.root, "internal/testkit/testdata/streams")
	b, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	must(t, err)
	var truths map[string]truth
	must(t, json.Unmarshal(b, &truths))
	var all []recording
	for _, name := range names {
		r := recording{}
		var ok bool
		if r.truth, ok = truths[name]; !ok {
			t.Fatalf("no recording %s", name)
		}
		r.call, r.script, err = testkit.ReadRecording(filepath.Join(dir, name+".jsonl"))
		must(t, err)
		all = append(all, r)
	}
	return all
}

// play has one recording played, as fast as it was recorded. An end that is not
// clean comes when the client has all bytes, so that what is known of the
// exchange does not depend on who was faster. It returns the request's id.
func (s *stack) play(ctx context.Context, r recording) (id string, err error) {
	script, call := r.script, r.call
	all := len(script.Body())
	arrived := make(chan struct{})
	switch script.End {
	case testkit.EndHold:
		call.HangUpAfter = all
	case testkit.EndTruncated, testkit.EndReset:
		script.EndAfter = arrived
	case testkit.EndEOF:
	}
	call.OnPiece = func(body []byte) {
		if len(body) == all {
			close(arrived)
		}
	}
	id = s.expect(script)
	call.Header = append([]testkit.Header{{Name: "x-request-id", Value: id}}, call.Header...)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := s.client.Do(ctx, call); err != nil {
		return id, fmt.Errorf("%s: %w", script.Name, err)
	}
	return id, nil
}

// expect has the request with the id that it returns answered by a script.
func (s *stack) expect(script testkit.Script) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	id = fmt.Sprintf("e2e-%d", s.serial)
	s.scripts[id] = script
	return id
}

// drive plays all recordings so many times, eight at a time.
func (s *stack) drive(t *testing.T, all []recording, times int) {
	t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for range times {
		for _, r := range all {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if _, err := s.play(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually wants f to hold in time.
func eventually(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := testkit.Poll(ctx, f); err != nil {
		t.Error(err)
	}
}

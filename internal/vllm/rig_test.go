//go:build vllm

package vllm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// rig is a vLLM behind an Envoy with an Inferspan, all real.
type rig struct {
	vllm   string // ip:port
	python string // of the environment that vLLM runs in
	front  string // ip:port of Envoy's listener
	sink   *testkit.Sink
	span   *testkit.Inferspan
	client *testkit.Client
	nudged counters // what our own nudges cost, to be left out
}

func start(t *testing.T) *rig {
	t.Helper()
	dir := os.Getenv("INFERSPAN_VLLM")
	if dir == "" {
		t.Fatal("INFERSPAN_VLLM does not say where install.sh put vLLM; run `make e2e-vllm`")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := &rig{python: filepath.Join(dir, "venv", "bin", "python")}
	var err error
	if r.sink, err = testkit.NewSink(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.sink.Close)
	r.startVLLM(ctx, t, dir)

	binary, err := testkit.BuildInferspan(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.span, err = testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: binary, Dir: t.TempDir(), Env: r.sink.Env(),
		Config: fmt.Sprintf("pools:\n  - {name: vllm, endpoints: [%q]}\nmodels:\n"+
			"  - {name: tiny, targets: [{pool: vllm}]}\n  - {name: renamed, targets: [{pool: vllm, model: tiny}]}\n", r.vllm),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r.span.Process) })

	envoy, err := testkit.StartDelivered(ctx, "inline.yaml", testkit.EnvoyAddrs{Processor: r.span.Listen, VLLM: [2]string{r.vllm, r.vllm}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Kill)
	if r.front, err = envoy.ListenerAddr(ctx, "inference"); err != nil {
		t.Fatal(err)
	}
	r.client = testkit.NewClient(r.front, false)
	t.Cleanup(r.client.Close)
	return r
}

// startVLLM starts the server in a process group of its own: its engine and
// worker are children that outlive a killed parent.
func (r *rig) startVLLM(ctx context.Context, t *testing.T, dir string) {
	t.Helper()
	addr, err := testkit.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	r.vllm = addr
	_, port, _ := strings.Cut(addr, ":")
	log, err := os.Create(filepath.Join(t.TempDir(), "vllm.log"))
	if err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(context.WithoutCancel(ctx), "./serve.sh", dir, port, "--enable-scale-out", "--otlp-traces-endpoint", "http://"+r.sink.Addr())
	serve.Env = append(os.Environ(), "OTEL_SERVICE_NAME=vllm", "OTEL_BSP_SCHEDULE_DELAY=500", "OTEL_EXPORTER_OTLP_TRACES_INSECURE=true")
	serve.Stdout, serve.Stderr = log, log
	serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := serve.Start(); err != nil {
		t.Fatal(fmt.Errorf("starting vLLM: %w", err))
	}
	ended := make(chan struct{})
	go func() { _ = serve.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-serve.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
		}
		_ = syscall.Kill(-serve.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	err = testkit.Poll(ctx, func(ctx context.Context) error {
		select {
		case <-ended:
			return nil
		default:
		}
		_, err := testkit.Get(ctx, "http://"+r.vllm+"/health")
		return err
	})
	select {
	case <-ended:
		err = fmt.Errorf("vLLM ended at its start")
	default:
	}
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("starting vLLM: %v\n%s", err, text[max(0, len(text)-4000):])
	}
}

func stop(t *testing.T, p *testkit.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("%v\n%s", err, p.Log())
	}
}

// counters are vLLM's own counts.
type counters struct{ prompt, output int64 }

// nudge makes the engine take a step: only then does it count, and forget, the
// requests that were aborted last.
func (r *rig) nudge(ctx context.Context, t *testing.T) {
	t.Helper()
	direct := testkit.NewClient(r.vllm, false)
	defer direct.Close()
	a, err := direct.Do(ctx, testkit.Call{
		Method: http.MethodPost, Path: completionPath, Header: []testkit.Header{{Name: "content-type", Value: "application/json"}},
		Body: []byte(`{"model":"tiny","prompt":"a","max_tokens":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
			Output int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(a.Body, &said); err != nil || said.Usage.Output != 1 {
		t.Fatalf("nudging vLLM: %v, answer %s", err, a.Body)
	}
	r.nudged.prompt += said.Usage.Prompt
	r.nudged.output += said.Usage.Output
}

// idleCounters returns what vLLM has counted of ours, when it has nothing left
// to do.
func (r *rig) idleCounters(ctx context.Context, t *testing.T) counters {
	t.Helper()
	r.nudge(ctx, t)
	var c counters
	last := counters{-1, -1}
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		page, err := testkit.Get(ctx, "http://"+r.vllm+"/metrics")
		if err != nil {
			return err
		}
		values, err := sums(string(page))
		if err != nil {
			return err
		}
		if n := values["vllm:num_requests_running"] + values["vllm:num_requests_waiting"]; n > 0 {
			return fmt.Errorf("%v requests are still with the engine", n)
		}
		c = counters{
			int64(values["vllm:prompt_tokens_total"]) - r.nudged.prompt,
			int64(values["vllm:generation_tokens_total"]) - r.nudged.output,
		}
		if c != last {
			last = c
			return fmt.Errorf("the counters still move")
		}
		return nil
	})
	if err != nil {
		t.Fatal(fmt.Errorf("waiting for vLLM to be idle: %w", err))
	}
	return c
}

// sums adds up the samples of each name of a page of metrics.
func sums(page string) (map[string]float64, error) {
	all := map[string]float64{}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		name, _, _ := strings.Cut(line[:at], "{")
		all[name] += v
	}
	return all, nil
}

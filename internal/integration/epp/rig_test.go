//go:build integration

package epp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/internal/testkit/suite"
)

// limit bounds what a test waits for; none of them depends on its length.
const limit = 20 * time.Second

var binary string

func TestMain(m *testing.M) { os.Exit(suite.WithInferspan(m, &binary)) }

// picker is a running Inferspan, and a connection to it.
type picker struct {
	*testkit.Inferspan

	conn *grpc.ClientConn
}

// start runs Inferspan with what config holds beside its addresses.
func start(t *testing.T, config string) *picker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	i, err := testkit.StartInferspan(ctx, testkit.InferspanOptions{Binary: binary, Dir: t.TempDir(), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
		defer cancel()
		if err := i.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(i.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return &picker{Inferspan: i, conn: conn}
}

// pool is the configuration of a pool of pods.
func pool(name string, pods ...*pod) string {
	addrs := make([]string, len(pods))
	for i, p := range pods {
		addrs[i] = p.addr
	}
	return fmt.Sprintf("pools:\n- name: %s\n  endpoints: [%s]\n", name, strings.Join(addrs, ", "))
}

// pod is a model server as far as a picker sees one: its metrics.
type pod struct {
	addr    string
	scrapes atomic.Int64 // of its metrics, so far
}

// newPod is a pod with so many requests that wait, a KV cache so full, and so
// many adapters that run.
func newPod(t *testing.T, waiting int, kv float64, adapters ...string) *pod {
	t.Helper()
	p := &pod{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		p.scrapes.Add(1)
		_, _ = fmt.Fprintf(w, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} %d.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} %g
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{max_lora="2",running_lora_adapters=%q,waiting_lora_adapters=""} %d
`, waiting, kv, strings.Join(adapters, ","), time.Now().Unix())
	}))
	t.Cleanup(server.Close)
	p.addr = server.Listener.Addr().String()
	return p
}

// scraped waits until the picker has had the pods' metrics.
func scraped(t *testing.T, pods ...*pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := testkit.Poll(ctx, func(context.Context) error {
		for _, p := range pods {
			// The second shows that the first was taken in.
			if n := p.scrapes.Load(); n < 2 {
				return fmt.Errorf("%s was scraped %d times, want 2", p.addr, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

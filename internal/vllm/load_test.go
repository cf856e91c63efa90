//go:build vllm

package vllm

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/route/scrape"
)

// loaded is how many requests are with the server while its page is read.
const loaded = 6

// compareLoad reads the server's own page of metrics while it is busy, and wants
// Inferspan to show the same.
func (r *rig) compareLoad(ctx context.Context, t *testing.T, report *strings.Builder) {
	t.Helper()
	busy, leave := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer leave()
	k := long[2] // one choice, one prompt: one request of vLLM's
	for i := range loaded {
		call := testkit.Call{
			Method: http.MethodPost, Path: k.path, Body: k.request(t, i),
			Header: []testkit.Header{{Name: "content-type", Value: "application/json"}},
		}
		clients.Go(func() { _, _ = r.client.Do(busy, call) }) // it ends with busy
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var page []byte
	err := testkit.Poll(wait, func(ctx context.Context) (err error) {
		if page, err = testkit.Get(ctx, "http://"+r.vllm+"/metrics"); err != nil {
			return err
		}
		signals, err := scrape.Read(bufio.NewReader(bytes.NewReader(page)))
		if err != nil {
			return err
		}
		want, err := sums(string(page))
		if err != nil {
			return err
		}
		if !signals.Running.OK || signals.Running.V != want["vllm:num_requests_running"] ||
			!signals.Waiting.OK || signals.Waiting.V != want["vllm:num_requests_waiting"] ||
			!signals.KVUsage.OK || signals.KVUsage.V != want["vllm:kv_cache_usage_perc"] {
			t.Errorf("signals %+v, the page says %v running, %v waiting, %v in use", signals,
				want["vllm:num_requests_running"], want["vllm:num_requests_waiting"], want["vllm:kv_cache_usage_perc"])
		}
		if n := signals.Running.V + signals.Waiting.V; n != loaded || signals.KVUsage.V == 0 {
			return fmt.Errorf("%v requests with the server, %v of its cache in use; want %d, and some", n, signals.KVUsage.V, loaded)
		}
		if !signals.BlockSize.OK || !signals.Blocks.OK || signals.MaxLoRA.OK {
			t.Errorf("signals %+v, want the cache's size and no adapters", signals)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	if file := os.Getenv("INFERSPAN_PAGE"); file != "" {
		if err := os.WriteFile(file, page, 0o600); err != nil {
			t.Fatal(fmt.Errorf("keeping the server's page: %w", err))
		}
	}
	labels := fmt.Sprintf("{inferspan_endpoint=%q,inferspan_pool=\"vllm\"}", r.vllm)
	err = testkit.Poll(wait, func(ctx context.Context) error {
		ours, err := testkit.Get(ctx, "http://"+r.span.Admin+"/metrics")
		if err != nil {
			return err
		}
		for _, line := range []string{
			fmt.Sprintf("inferspan_endpoint_inflight%s %d\n", labels, loaded),
			fmt.Sprintf("inferspan_endpoint_healthy%s 1\n", labels), fmt.Sprintf("inferspan_endpoint_queue%s 0\n", labels),
		} {
			if !bytes.Contains(ours, []byte("\n"+line)) {
				return fmt.Errorf("no %q on Inferspan's page", line)
			}
		}
		if used := fmt.Sprintf("\ninferspan_endpoint_kv_usage_ratio%s ", labels); !bytes.Contains(ours, []byte(used)) || bytes.Contains(ours, []byte(used+"0\n")) {
			return fmt.Errorf("no KV usage above 0 on Inferspan's page")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(report, "\nLoad: of %d requests at once, the server's page and Inferspan's tell the same.\n", loaded)
}

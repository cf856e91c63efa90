//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/budget"
	"github.com/inferspan/inferspan/internal/testkit"
)

const (
	// costTokens is how many chunks a stream has, costStreams how many streams
	// there are at a time, and costPace the time between two chunks of one.
	costTokens, costStreams = 50, 8
	costPace                = 20 * time.Millisecond
	costStamp               = `"content":"`
)

// stampingServer answers with a chat stream whose chunks hold when they were
// written.
type stampingServer struct{ since time.Time }

func (s stampingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r) // its load and health, which it does not tell
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	due := time.NewTicker(costPace)
	defer due.Stop()
	for i := range costTokens {
		if i > 0 { // the first comes at once: what it takes is Envoy's and the processor's
			select {
			case <-due.C:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = fmt.Fprintf(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764583200,"model":"tiny","choices":[{"index":0,"delta":{`+
			costStamp+`%019d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", time.Since(s.since))
		_ = out.Flush() // a client that is gone shows as a stream that is too short
	}
	_, _ = fmt.Fprint(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764583200,"model":"tiny","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// costs are medians of one round: what the client of a stream sees.
type costs struct{ gap, age, first time.Duration }

// BenchmarkEnvoy compares what a client sees through the real Envoy: with no
// filter, with the stock processor in the delivered filters, and with Inferspan.
// The three take turns.
func BenchmarkEnvoy(b *testing.B) {
	var table budget.Table
	for _, form := range []string{observe, split} {
		b.Run(form, func(b *testing.B) {
			since := time.Now()
			none, noop, ours := costEdge(b, form, since), costEdge(b, form, since), costEdge(b, form, since)
			none.adapt = strings.NewReplacer("/(v1|v2|inference/v1)/", "/(v2|inference/v1)/") // passes the filters by
			none.listen, noop.listen = startCostNoop(b), startCostNoop(b)
			ours.startInferspan(ours.config("default"))
			edges := [...]*edge{none, noop, ours}
			for _, e := range edges {
				e.startEnvoy()
				costRound(b, e, since)
			}
			var gap, noopGap, age, first []float64
			ratio := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
			for turn := 0; b.Loop(); turn++ {
				var c [len(edges)]costs
				for k := range edges {
					i := (turn + k) % len(edges) // each is first as often
					c[i] = costRound(b, edges[i], since)
				}
				gap = append(gap, ratio(c[2].gap, c[0].gap))
				noopGap = append(noopGap, ratio(c[1].gap, c[0].gap))
				age = append(age, ratio(c[2].age, c[1].age))
				first = append(first, ratio(c[2].first, c[1].first))
			}
			b.ReportMetric(0, "ns/op") // of all three
			b.ReportMetric(middle(gap), "gap/none")
			b.ReportMetric(middle(age), "age/noop")
			b.ReportMetric(middle(first), "ttft/noop")
			b.ReportMetric(middle(noopGap), "noop-gap/none")
			table.Add(budget.Row{What: form + ": gap between chunks", Got: middle(gap), Limit: 1.02, Unit: "x no filter"})
			table.Add(budget.Row{What: form + ": age of a chunk", Got: middle(age), Limit: 1, Unit: "x noop"})
			table.Add(budget.Row{What: form + ": time to first token", Got: middle(first), Limit: 1, Unit: "x noop"})
		})
	}
	if err := table.Write(os.Stdout); err != nil {
		b.Error(err)
	}
}

// costEdge is an edge whose model servers stamp their chunks.
func costEdge(b *testing.B, form string, since time.Time) *edge {
	b.Helper()
	e := newEdge(b, form)
	for i := range e.servers {
		ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := &http.Server{Handler: stampingServer{since}, ReadHeaderTimeout: patience}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(ln) // only Close ends it
		}()
		b.Cleanup(func() { _ = s.Close(); <-served })
		e.servers[i] = ln.Addr().String()
	}
	return e
}

func startCostNoop(b *testing.B) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	p, addr, err := testkit.StartNoop(ctx, b.TempDir(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	return addr
}

// costRound plays costStreams streams through e at a time.
func costRound(b *testing.B, e *edge, since time.Time) costs {
	b.Helper()
	call := testkit.Call{
		Method: http.MethodPost, Path: "/v1/chat/completions",
		Header: []testkit.Header{{Name: "content-type", Value: "application/json"}},
		Body:   []byte(`{"model":"tiny","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("text ", 200) + `"}]}`),
	}
	var mu sync.Mutex
	var gaps, ages, firsts []time.Duration
	var wg sync.WaitGroup
	for range costStreams {
		wg.Go(func() {
			begun := time.Since(since)
			a, err := e.client.Do(b.Context(), call)
			if err != nil {
				b.Error(err)
				return
			}
			g, o, err := arrivals(a, begun)
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			gaps, ages = append(gaps, g[1:]...), append(ages, o...)
			firsts = append(firsts, g[0])
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return costs{gap: middle(gaps), age: middle(ages), first: middle(firsts)}
}

// arrivals returns for each stamped chunk the time since the one before, since the
// call for the first, and its age.
func arrivals(a *testkit.Answer, begun time.Duration) (gaps, ages []time.Duration, err error) {
	var last time.Duration
	at := 0
	for {
		n := bytes.Index(a.Body[at:], []byte(costStamp))
		if n < 0 {
			break
		}
		at += n + len(costStamp)
		stamp, err := strconv.ParseInt(string(a.Body[at:at+19]), 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a stamp: %w", err)
		}
		arrived, _ := a.ArrivedAt(at)
		gaps, ages = append(gaps, arrived-last), append(ages, begun+arrived-time.Duration(stamp))
		last = arrived
	}
	if len(gaps) != costTokens {
		return nil, nil, fmt.Errorf("%d chunks of status %d arrived, want %d", len(gaps), a.Status, costTokens)
	}
	return gaps, ages, nil
}

// middle returns the median.
func middle[T float64 | time.Duration](all []T) T {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}

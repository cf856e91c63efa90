//go:build vllm

package vllm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

const (
	endedAtOnce   = 200 // exchanges whose usage the server reports
	countedAtOnce = 40  // exchanges counted from the stream
	abortedAtOnce = 60
)

// TestRealServer compares what Inferspan says of several hundred exchanges
// with what the server counted, and then puts the OpenAI client in front.
func TestRealServer(t *testing.T) {
	r := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	var report strings.Builder
	before := r.idleCounters(ctx, t)

	ended := r.run(ctx, t, reported, endedAtOnce, never)
	after := r.idleCounters(ctx, t)
	r.compareEnded(t, &report, "Server reports usage", ended, counters{after.prompt - before.prompt, after.output - before.output}, true)

	before = after
	fromStream := r.run(ctx, t, counted, countedAtOnce, never)
	after = r.idleCounters(ctx, t)
	r.compareEnded(t, &report, "Tokens counted from the stream, no usage", fromStream, counters{0, after.output - before.output}, false)

	before = after
	aborted := r.run(ctx, t, long, abortedAtOnce, func(i int) int { return 1500 + 400*(i%20) })
	after = r.idleCounters(ctx, t)
	r.compareAborted(t, &report, aborted, after.output-before.output)

	r.compareSpans(ctx, t, &report, slices.Concat(ended, fromStream))
	t.Run("Load", func(t *testing.T) { r.compareLoad(ctx, t, &report) })
	t.Run("OpenAI client", func(t *testing.T) { r.openAIClient(ctx, t) })
	t.Log("\n" + report.String())
	if file := os.Getenv("INFERSPAN_REPORT"); file != "" && !t.Failed() {
		text := "# Comparison with a real vLLM\n\nWritten by `make e2e-vllm` (`internal/vllm`): vLLM 0.32.0 on a CPU behind the real Envoy with\n" +
			"`deploy/envoy/inline.yaml`, all requests of a row at once. Left: Inferspan's records; right: the server's own counters.\n\n" + report.String()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(fmt.Errorf("writing the report: %w", err))
		}
	}
}

func never(int) int { return 0 }

// exchange is one request of ours and its record.
type exchange struct {
	kind   kind
	record map[string]any
}

func (x exchange) tokens(field string) int64 {
	v, _ := x.record[field].(float64)
	return int64(v)
}

// run makes n exchanges of the kinds at once; hangUp says after how many bytes
// the client leaves the i-th, 0 for never.
func (r *rig) run(ctx context.Context, t *testing.T, kinds []kind, n int, hangUp func(i int) int) []exchange {
	t.Helper()
	all, faults := make([]exchange, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		k := kinds[i%len(kinds)]
		call := testkit.Call{
			Method: http.MethodPost, Path: k.path, Body: k.request(t, i), HangUpAfter: hangUp(i),
			Header: []testkit.Header{{Name: "content-type", Value: "application/json"}},
		}
		wg.Go(func() {
			a, err := r.client.Do(ctx, call)
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("status %d: %.300s", a.Status, a.Body)
			}
			if err != nil {
				faults[i] = fmt.Errorf("%s: %w", k.name, err)
				return
			}
			all[i] = exchange{k, nil}
			all[i].record, faults[i] = r.record(ctx, a.Header.Get("x-request-id"))
		})
	}
	wg.Wait()
	for _, err := range faults {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// record waits for the one record of a request id.
func (r *rig) record(ctx context.Context, id string) (map[string]any, error) {
	var records []map[string]any
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := testkit.Poll(ctx, func(ctx context.Context) (err error) {
		records, err = r.span.Lookup(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(records) != 1 {
		return nil, fmt.Errorf("%d records of request %s, not one", len(records), id)
	}
	return records[0], nil
}

func (r *rig) compareEnded(t *testing.T, report *strings.Builder, title string, all []exchange, engine counters, prompts bool) {
	t.Helper()
	var ours counters
	for _, x := range all {
		if o := x.record["outcome"]; o != "ok" {
			t.Errorf("%s: outcome %v, want ok", x.kind.name, o)
		}
		if s := x.record["output_source"]; s == nil || s == "estimate" {
			t.Errorf("%s: output tokens from %v, want an exact source", x.kind.name, s)
		}
		ours.output += x.tokens("output_tokens")
		ours.prompt += x.tokens("prompt_tokens") * x.kind.choices
	}
	fmt.Fprintf(report, "%s, %d exchanges of %d kinds:\n\n", title, len(all), kindsIn(all))
	if prompts {
		fmt.Fprintf(report, "* prompt tokens, times the choices per prompt: %d, vLLM %d\n", ours.prompt, engine.prompt)
		if ours.prompt != engine.prompt {
			t.Errorf("%s: prompt tokens %d, vLLM counted %d", title, ours.prompt, engine.prompt)
		}
	}
	fmt.Fprintf(report, "* output tokens: %d, vLLM %d\n\n", ours.output, engine.output)
	if ours.output != engine.output {
		t.Errorf("%s: output tokens %d, vLLM counted %d", title, ours.output, engine.output)
	}
}

func (r *rig) compareAborted(t *testing.T, report *strings.Builder, all []exchange, engine int64) {
	t.Helper()
	var ours int64
	for _, x := range all {
		if o := x.record["outcome"]; o != "client_cancelled" {
			t.Errorf("%s: outcome %v, want client_cancelled", x.kind.name, o)
		}
		if s := x.record["output_source"]; s != "continuous_usage" {
			t.Errorf("%s: output tokens from %v, want continuous_usage", x.kind.name, s)
		}
		ours += x.tokens("output_tokens")
	}
	fmt.Fprintf(report, "Clients that hang up, %d streams with continuous usage:\n\n* output tokens: %d, vLLM %d: "+
		"%d, %.1f %%, were generated and never sent\n\n", len(all), ours, engine, engine-ours, 100*float64(engine-ours)/float64(engine))
	if ours > engine {
		t.Errorf("aborted streams: %d output tokens, vLLM counted only %d", ours, engine)
	}
	if ours == 0 {
		t.Error("aborted streams: no output tokens")
	}
}

func kindsIn(all []exchange) int {
	names := map[string]bool{}
	for _, x := range all {
		names[x.kind.name] = true
	}
	return len(names)
}

// compareSpans checks that vLLM's span of each request is a child of ours, and
// that our first event of a stream comes after the first token by vLLM's own
// clock, which begins later than ours.
func (r *rig) compareSpans(ctx context.Context, t *testing.T, report *strings.Builder, all []exchange) {
	t.Helper()
	children := 0
	var behind []time.Duration
	for _, x := range all {
		id, parent := fmt.Sprint(x.record["trace_id"]), fmt.Sprint(x.record["span_id"])
		find := func(s testkit.Span) bool {
			return s.GetName() == "llm_request" && hex.EncodeToString(s.GetTraceId()) == id
		}
		wait, cancel := context.WithTimeout(ctx, 30*time.Second)
		_, err := r.sink.WaitSpan(wait, find)
		cancel()
		if err != nil {
			t.Fatalf("%s, trace %s: vLLM's llm_request: %v", x.kind.name, id, err)
		}
		for _, s := range r.sink.Spans(find) {
			children++
			if got := hex.EncodeToString(s.GetParentSpanId()); got != parent {
				t.Errorf("%s, trace %s: llm_request is a child of %s, not of our span %s", x.kind.name, id, got, parent)
			}
			ours, streams := x.record["first_event_us"].(float64)
			theirs, _ := testkit.Attr(s.GetAttributes(), "gen_ai.latency.time_to_first_token")
			seconds, ok := theirs.(float64)
			if !streams || !ok || x.kind.early() {
				continue
			}
			d := time.Duration(ours)*time.Microsecond - time.Duration(seconds*float64(time.Second))
			if behind = append(behind, d); d < 0 && x.kind.choices == 1 && x.kind.prompts() == 1 {
				t.Errorf("%s, trace %s: first event at %v µs, before vLLM's first token at %v s", x.kind.name, id, ours, seconds)
			}
		}
	}
	if len(behind) == 0 {
		t.Fatal("no stream to compare the time to the first token of")
	}
	slices.Sort(behind)
	fmt.Fprintf(report, "Traces: %d spans `llm_request` of vLLM, each a child of the span of its exchange. The first event of %d streams\n"+
		"comes %v (median) after the first token by vLLM's own `gen_ai.latency.time_to_first_token`, which leaves out Envoy, Inferspan and\nthe server's parsers, on a machine with more work than it has cores for.\n",
		children, len(behind), behind[len(behind)/2].Round(100*time.Microsecond))
}

// openAIClient runs the OpenAI client and compares what it saw with the records.
func (r *rig) openAIClient(ctx context.Context, t *testing.T) {
	t.Helper()
	run := exec.CommandContext(ctx, r.python, "openai_client.py", "http://"+r.front+"/v1")
	out, err := run.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("running the OpenAI client: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(fmt.Errorf("running the OpenAI client: %w", err))
	}
	outcomes := map[string]string{"json": "ok", "stream": "ok", "hung up": "client_cancelled", "renamed": "ok", "unknown model": "rejected"}
	for line := range bytes.Lines(out) {
		var saw struct {
			Call      string  `json:"call"`
			RequestID string  `json:"request_id"`
			TraceID   string  `json:"trace_id"`
			ID        string  `json:"id"`
			Prompt    float64 `json:"prompt"`
			Output    float64 `json:"output"`
		}
		if err := json.Unmarshal(line, &saw); err != nil {
			t.Fatalf("reading the client's %q: %v", line, err)
		}
		rec, err := r.record(ctx, saw.RequestID)
		if err != nil {
			t.Fatalf("%s: %v", saw.Call, err)
		}
		want, known := outcomes[saw.Call]
		if !known || rec["outcome"] != want {
			t.Errorf("%s: outcome %v, want %s", saw.Call, rec["outcome"], want)
		}
		delete(outcomes, saw.Call)
		if saw.ID == "" {
			continue
		}
		if rec["response_id"] != saw.ID || rec["trace_id"] != saw.TraceID {
			t.Errorf("%s: ids %v, %v, the client has %s, %s", saw.Call, rec["response_id"], rec["trace_id"], saw.ID, saw.TraceID)
		}
		if saw.Output > 0 && (rec["output_tokens"] != saw.Output || rec["prompt_tokens"] != saw.Prompt) {
			t.Errorf("%s: %v prompt and %v output tokens, the client has %v and %v", saw.Call, rec["prompt_tokens"], rec["output_tokens"], saw.Prompt, saw.Output)
		}
	}
	if len(outcomes) > 0 {
		t.Errorf("the client did not make all its calls: %v are missing", outcomes)
	}
}

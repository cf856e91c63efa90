//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/dashboards/grafana"
	"github.com/inferspan/inferspan/internal/testkit"
)

// kinds are the recordings that are played: every source of tokens, several
// choices, tools, reasoning, cached prompts, whole answers, and every way to end
// badly.
var kinds = []string{
	"chat-usage", "chat-continuous-usage", "chat-no-usage", "chat-n2", "chat-reasoning",
	"chat-reasoning-only-excluded", "chat-cached-prompt-again", "chat-bytes-logprobs", "chat-token-ids",
	"chat-tool-required", "chat-usage-1-token", "chat-json", "chat-json-n2",
	"comp-usage", "comp-prompts3", "comp-json",
	"error-model-404", "v012-engine-dead-500", "engine-dies-midstream",
	"v012-engine-dies-before-first-token", "server-killed-midstream",
	"chat-abort-3", "chat-abort-continuous",
}

// account is what is said of many exchanges together.
type account struct {
	Requests     map[string]float64 // by outcome
	OutputTokens float64            // from exact sources
	FirstTokens  float64            // exchanges that have one
}

// expected is the account of recordings played so many times.
func expected(all []recording, times float64) account {
	a := account{Requests: map[string]float64{}}
	for _, r := range all {
		a.Requests[r.truth.Outcome] += times
		if r.truth.OutputSource != "estimate" {
			a.OutputTokens += times * r.truth.OutputTokens
		}
		if r.truth.FirstToken != nil {
			a.FirstTokens += times
		}
	}
	return a
}

func TestWhatArrivesIsWhatWasSent(t *testing.T) {
	s := start(t, layout{})
	all := s.recordings(t, kinds...)
	// rate() needs a first sample to grow from: the second wave's growth is what
	// the dashboard's queries see.
	const perWave = 2
	for wave := 1; wave <= 2; wave++ {
		s.drive(t, all, perWave)
		want := expected(all, float64(wave*perWave))
		t.Run(fmt.Sprintf("spans, wave %d", wave), func(t *testing.T) { s.checkSpans(t, want) })
		for _, job := range []string{overOTLP, scraped} {
			t.Run(fmt.Sprintf("metrics of %s, wave %d", job, wave), func(t *testing.T) { s.checkMetrics(t, job, want, all, float64(wave*perWave)) })
		}
	}
	if t.Failed() {
		return // what follows would only repeat it
	}
	t.Run("dashboard", s.checkDashboard)
	t.Run("exemplars", s.checkExemplars)
	t.Run("nothing lost", s.checkNothingLost)
	t.Run("promtool", s.checkPromtool)
}

// checkSpans wants one span with an outcome for each exchange at the far end of
// the collector.
func (s *stack) checkSpans(t *testing.T, want account) {
	t.Helper()
	eventually(t, func(context.Context) error {
		got := account{Requests: map[string]float64{}}
		seen := map[string]bool{}
		for _, span := range s.sink.Spans(func(testkit.Span) bool { return true }) {
			outcome, ok := testkit.Attr(span.GetAttributes(), "inferspan.outcome")
			if !ok {
				continue // the span of a decision
			}
			id := hex.EncodeToString(span.GetSpanId())
			if seen[id] {
				return fmt.Errorf("the span %s arrived twice", id)
			}
			seen[id] = true
			got.Requests[fmt.Sprint(outcome)]++
			if n, ok := testkit.Attr(span.GetAttributes(), "gen_ai.usage.output_tokens"); ok {
				tokens, _ := n.(int64)
				got.OutputTokens += float64(tokens)
			}
			got.FirstTokens += float64(len(testkit.SpanEvents(span, "inferspan.first_token")))
		}
		return differ("spans", want, got)
	})
}

// checkMetrics wants the same account in Prometheus, and prompts' tokens too.
func (s *stack) checkMetrics(t *testing.T, job string, want account, all []recording, times float64) {
	t.Helper()
	wantInput := 0.0
	for _, r := range all {
		wantInput += times * r.truth.PromptTokens
	}
	eventually(t, func(ctx context.Context) error {
		got := account{Requests: map[string]float64{}}
		series, err := s.prometheus.Query(ctx, fmt.Sprintf(`sum by (inferspan_outcome) (inferspan_requests_total{job=%q})`, job))
		if err != nil {
			return err
		}
		for _, one := range series {
			got.Requests[one.Labels["inferspan_outcome"]] = one.Samples[0]
		}
		var input, duration, active float64
		for _, q := range []struct {
			to   *float64
			expr string
		}{
			{&got.OutputTokens, `inferspan_output_tokens_total{job=%q, inferspan_usage_source!="estimate"}`},
			{&got.FirstTokens, `gen_ai_server_time_to_first_token_seconds_count{job=%q}`},
			{&input, `inferspan_input_tokens_total{job=%q}`},
			{&duration, `gen_ai_server_request_duration_seconds_count{job=%q}`},
			{&active, `inferspan_request_active{job=%q}`},
		} {
			if *q.to, err = s.prometheus.Sum(ctx, fmt.Sprintf(q.expr, job)); err != nil {
				return err
			}
		}
		if err := differ("metrics", want, got); err != nil {
			return err
		}
		requests := times * float64(len(all))
		if input != wantInput || duration != requests || active != 0 {
			return fmt.Errorf("%g input tokens, %g durations, %g active; want %g, %g, 0", input, duration, active, wantInput, requests)
		}
		return nil
	})
}

func differ(what string, want, got account) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s differ from what was sent (-want +got):\n%s", what, diff)
	}
	return nil
}

// checkDashboard runs each query of the dashboard for each of the jobs and
// wants numbers.
func (s *stack) checkDashboard(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(s.root, "dashboards/grafana/inferspan.json"))
	must(t, err)
	queries, err := grafana.Queries(file)
	must(t, err)
	if len(queries) < 30 {
		t.Fatalf("%d queries in the dashboard, want 30 or more", len(queries))
	}
	for _, job := range []string{overOTLP, scraped} {
		values := strings.NewReplacer(
			"$__rate_interval", "10s", "$job", job, "$instance", ".*", "$model", ".*", "$pool", ".*")
		for _, q := range queries {
			expr := values.Replace(q.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: a variable is left in %s", q.Panel, expr)
			}
			series, err := s.prometheus.QueryRange(t.Context(), expr, s.begun, time.Now())
			if err != nil {
				t.Errorf("%s: %v", q.Panel, err)
				continue
			}
			if !slices.ContainsFunc(series, testkit.Series.Real) {
				t.Errorf("%s, job %s: no number in %d series of %s", q.Panel, job, len(series), expr)
			}
		}
	}
}

// checkExemplars wants the exemplars of the first panel to lead to traces that
// are there.
func (s *stack) checkExemplars(t *testing.T) {
	traces := map[string]bool{}
	for _, span := range s.sink.Spans(func(testkit.Span) bool { return true }) {
		traces[hex.EncodeToString(span.GetTraceId())] = true
	}
	for _, job := range []string{overOTLP, scraped} {
		ids, err := s.prometheus.ExemplarTraces(t.Context(), fmt.Sprintf(`gen_ai_server_time_to_first_token_seconds_bucket{job=%q}`, job), s.begun)
		must(t, err)
		if len(ids) == 0 {
			t.Errorf("job %s: no exemplars on the time to first token", job)
		}
		for _, id := range ids {
			if !traces[id] {
				t.Errorf("job %s: an exemplar leads to the trace %q, which did not arrive", job, id)
			}
		}
	}
}

// checkNothingLost wants neither Inferspan nor the collector to have dropped or
// refused anything.
func (s *stack) checkNothingLost(t *testing.T) {
	page, err := s.collector.SelfMetrics(t.Context())
	must(t, err)
	failed := regexp.MustCompile(`(?m)^otelcol_\w*(?:refused|failed)_\w*\{.*\} (\S+)$`)
	for _, m := range failed.FindAllSubmatch(page, -1) {
		if string(m[1]) != "0" {
			t.Errorf("the collector lost something: %s", m[0])
		}
	}
	sent := regexp.MustCompile(`(?m)^otelcol_exporter_sent_spans\w*\{.*\} (\S+)$`).FindSubmatch(page)
	spans := len(s.sink.Spans(func(testkit.Span) bool { return true }))
	if len(sent) < 2 || string(sent[1]) != fmt.Sprint(spans) {
		t.Errorf("the collector says that it sent %q spans, %d arrived", sent, spans)
	}
	for _, job := range []string{overOTLP, scraped} {
		dropped, err := s.prometheus.Sum(t.Context(), fmt.Sprintf(`inferspan_telemetry_dropped_total{job=%q}`, job))
		must(t, err)
		if dropped != 0 {
			t.Errorf("job %s: %g spans dropped", job, dropped)
		}
	}
}

// checkPromtool has Prometheus's own tool judge our configuration and our page.
func (s *stack) checkPromtool(t *testing.T) {
	promtool, err := testkit.Tool("promtool")
	must(t, err)
	run := func(stdin []byte, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Stdin = bytes.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(nil, "check", "config", s.config)
	run(nil, "test", "rules", filepath.Join(s.root, "dashboards/alerts/inferspan_test.yml"))
	resp, err := http.Get("http://" + s.inferspan.Admin + "/metrics")
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	run(page, "check", "metrics")
}

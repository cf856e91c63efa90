//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// service is the name that traces have in Jaeger.
const service = "inferspan"

// window is the time within which a piece of a response was under way: the
// stand-in could not send it before, and the client had it then.
type window struct {
	opened, arrived time.Time
	data            []byte
}

// inStep plays a stream whose pieces go out one by one, each when the client has
// the one before.
func (s *stack) inStep(t *testing.T, r recording) (request string, answer *testkit.Answer, windows []window) {
	t.Helper()
	script, call := r.script.Scaled(0), r.call
	pieces := slices.Clone(script.Pieces)
	gates := make([]chan struct{}, len(pieces)+1)
	windows = make([]window, len(pieces))
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	for i := range pieces {
		pieces[i].After = gates[i]
		windows[i].data = pieces[i].Data
	}
	script.Pieces = pieces
	windows[0].opened = time.Now()
	close(gates[0])
	next, end := 0, len(pieces[0].Data)
	call.OnPiece = func(body []byte) {
		for now := time.Now(); next < len(pieces) && len(body) >= end; now = time.Now() {
			windows[next].arrived = now
			next++
			if next < len(pieces) {
				windows[next].opened = now
				end += len(pieces[next].Data)
			}
			close(gates[next])
		}
	}
	request = s.expect(script)
	call.Header = append([]testkit.Header{{Name: "x-request-id", Value: request}}, call.Header...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := s.client.Do(ctx, call)
	must(t, err)
	return request, answer, windows
}

// A request's trace is found by each of its ids, its chunks are where they were,
// and exemplars lead to traces that are there.
func TestTracesAreFound(t *testing.T) {
	s := start(t, layout{gateway: []string{"DECISION_WAIT=1s", "KEEP_PERCENT=100"}})
	request, answer, windows := s.inStep(t, s.recordings(t, "chat-usage")[0])
	response := regexp.MustCompile(`"id":"(chatcmpl-[^"]+)"`).FindSubmatch(answer.Body)
	trace := answer.Header.Get("x-trace-id")
	if response == nil || trace == "" {
		t.Fatalf("the answer has no ids: %v\n%.200s", answer.Header, answer.Body)
	}
	var span testkit.JaegerSpan
	for name, find := range map[string]func(context.Context) ([]testkit.JaegerSpan, error){
		"trace id": func(ctx context.Context) ([]testkit.JaegerSpan, error) { return s.jaeger.Trace(ctx, trace) },
		"request id": func(ctx context.Context) ([]testkit.JaegerSpan, error) {
			return s.jaeger.Find(ctx, service, map[string]string{"inferspan.request.id": request}, 5)
		},
		"response id": func(ctx context.Context) ([]testkit.JaegerSpan, error) {
			return s.jaeger.Find(ctx, service, map[string]string{"gen_ai.response.id": string(response[1])}, 5)
		},
	} {
		t.Run("by "+name, func(t *testing.T) {
			eventually(t, func(ctx context.Context) (err error) {
				span, err = only(find(ctx))
				if err == nil && span.TraceID != trace {
					return fmt.Errorf("found the trace %s, want %s", span.TraceID, trace)
				}
				return err
			})
		})
	}
	if t.Failed() {
		return
	}
	t.Run("chunks", func(t *testing.T) { checkChunks(t, span, windows) })
	for _, id := range []string{trace, request, string(response[1])} {
		t.Run("lookup of "+id, func(t *testing.T) { s.checkLookup(t, id) })
	}

	s.drive(t, s.recordings(t, kinds...), 1)
	for _, job := range []string{overOTLP, scraped} {
		t.Run("exemplars of "+job, func(t *testing.T) { s.checkExemplarsInJaeger(t, job) })
	}
}

// only returns the one span of an exchange among those of its trace.
func only(spans []testkit.JaegerSpan, err error) (testkit.JaegerSpan, error) {
	if err != nil {
		return testkit.JaegerSpan{}, err
	}
	spans = slices.DeleteFunc(spans, func(s testkit.JaegerSpan) bool { return s.Attributes["inferspan.outcome"] == nil })
	if len(spans) != 1 {
		return testkit.JaegerSpan{}, fmt.Errorf("%d spans, want 1", len(spans))
	}
	return spans[0], nil
}

// visibleText finds the chunks with text.
var visibleText = regexp.MustCompile(`"delta":\{[^}]*"content":"[^"]`)

// checkChunks wants each chunk event within the time in which its chunk was
// under way.
func checkChunks(t *testing.T, span testkit.JaegerSpan, windows []window) {
	t.Helper()
	var tokens []window
	for _, w := range windows {
		if visibleText.Match(w.data) {
			tokens = append(tokens, w)
		}
	}
	found := 0
	for _, e := range span.Events {
		index := 0
		switch e.Attributes["event"] {
		case "inferspan.first_token":
		case "inferspan.chunk":
			i, err := strconv.Atoi(fmt.Sprint(e.Attributes["inferspan.chunk.index"]))
			must(t, err)
			index = i
		default:
			continue
		}
		found++
		if index >= len(tokens) {
			t.Errorf("a chunk %d of %d", index, len(tokens))
			continue
		}
		w := tokens[index]
		// A span's times are in whole microseconds here.
		if at := e.At.UnixMicro(); at < w.opened.UnixMicro() || at > w.arrived.UnixMicro() {
			t.Errorf("the chunk %d was seen at %s, but was under way from %s to %s", index, e.At, w.opened, w.arrived)
		}
	}
	if len(tokens) < 20 || found < 10 {
		t.Errorf("%d events for %d chunks, want 10 or more for 20 or more", found, len(tokens))
	}
}

// checkLookup wants the record that `inferspan lookup` makes of Jaeger's span to
// be the journal's, as far as a span says it.
func (s *stack) checkLookup(t *testing.T, id string) {
	t.Helper()
	lookup := func(args ...string) map[string]any {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), s.binary, append([]string{"lookup", id, "--json"}, args...)...).Output()
		must(t, err)
		var record map[string]any
		must(t, json.Unmarshal(out, &record))
		return record
	}
	nobody, err := testkit.FreeAddr()
	must(t, err)
	want := lookup("--admin", s.inferspan.Admin)
	got := lookup("--admin", nobody, "--jaeger", s.jaeger.Query)
	var unsaid []string
	for name, value := range got {
		if value == nil && want[name] != nil {
			unsaid = append(unsaid, name)
			delete(want, name)
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-journal +Jaeger):\n%s", diff)
	}
	slices.Sort(unsaid)
	if diff := cmp.Diff([]string{"bytes", "choices", "events", "evidence_events", "frames", "keep_alives", "longest_gap_us", "shared_frames"}, unsaid); diff != "" {
		t.Errorf("what a span does not say (-want +got):\n%s", diff)
	}
}

// checkExemplarsInJaeger wants every exemplar's trace to be in Jaeger, in time.
func (s *stack) checkExemplarsInJaeger(t *testing.T, job string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		ids, err := s.prometheus.ExemplarTraces(ctx, fmt.Sprintf(`gen_ai_server_time_to_first_token_seconds_bucket{job=%q}`, job), s.begun)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return errors.New("no exemplars on the time to first token")
		}
		for _, id := range ids {
			if _, err := only(s.jaeger.Trace(ctx, id)); err != nil {
				return fmt.Errorf("an exemplar leads to the trace %q: %w", id, err)
			}
		}
		return nil
	})
}

// Of many requests, the gateway keeps those that failed, were slow or have a
// reason of their own, all of them, and with a share of nothing no other.
func TestTailSampling(t *testing.T) {
	s := start(t, layout{gateway: []string{"DECISION_WAIT=1s", "KEEP_PERCENT=0", "SLOW_FIRST_TOKEN_S=2"}})
	const fast, each = 20, 3
	var want []string
	play := func(r recording, keep bool) {
		t.Helper()
		id, err := s.play(t.Context(), r)
		must(t, err)
		if keep {
			want = append(want, id)
		}
	}
	for _, r := range s.recordings(t, "chat-usage") {
		slow := r
		slow.script.Pieces = slices.Clone(r.script.Pieces)
		for i := range slow.script.Pieces {
			slow.script.Pieces[i].At += 2200 * time.Millisecond
		}
		for range each {
			play(slow, true)
		}
		r.script = r.script.Scaled(0)
		for range fast {
			play(r, false)
		}
	}
	for _, r := range s.recordings(t, "v012-engine-dead-500", "engine-dies-midstream", "chat-abort-3") {
		for range each {
			play(r, true)
		}
	}
	slices.Sort(want)
	dropped := regexp.MustCompile(`(?m)^otelcol_processor_tail_sampling_global_count_traces_sampled\w*\{.*sampled="false".*\} (\d+)$`)
	eventually(t, func(ctx context.Context) error {
		page, err := s.gateway.SelfMetrics(ctx)
		if err != nil {
			return err
		}
		if m := dropped.FindSubmatch(page); len(m) < 2 || string(m[1]) != strconv.Itoa(fast) {
			return fmt.Errorf("the gateway dropped %q traces, want %d", m, fast)
		}
		spans, err := s.jaeger.Find(ctx, service, nil, 1000)
		if err != nil {
			return err
		}
		var got []string
		for _, span := range spans {
			if span.Attributes["inferspan.outcome"] != nil {
				got = append(got, fmt.Sprint(span.Attributes["inferspan.request.id"]))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("what was kept (-want +got):\n%s", diff)
		}
		return nil
	})
}

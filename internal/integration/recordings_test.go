//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// recorded is one recorded exchange: what is asked and answered, and what is
// true of it.
type recorded struct {
	name   string
	call   testkit.Call
	script testkit.Script
	truth  map[string]any
}

func recordings(t *testing.T) []recorded {
	t.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "internal", "testkit", "testdata", "streams")
	truths := map[string]map[string]any{}
	file, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &truths); err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for _, name := range slices.Sorted(maps.Keys(truths)) {
		r := recorded{name: name, truth: truths[name]}
		r.call, r.script, err = testkit.ReadRecording(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < 85 {
		t.Fatalf("%d recordings, want 85 or more", len(all))
	}
	return all
}

// play plays the recording through the edge as fast as it goes. Where the
// recording ends by a hang-up, the end waits until all bytes are with the client.
func (r recorded) play(ctx context.Context, e *edge) (exchange, error) {
	s, call := r.script.Scaled(0), r.call
	all := s.Body()
	arrived := make(chan struct{})
	switch s.End {
	case testkit.EndHold:
		call.HangUpAfter = len(all)
	case testkit.EndTruncated, testkit.EndReset:
		s.EndAfter = arrived
	default:
	}
	call.OnPiece = func(body []byte) {
		if len(body) == len(all) {
			close(arrived)
		}
	}
	return e.play(ctx, s, call)
}

// replay plays all recordings, eight at a time.
func (e *edge) replay(t *testing.T, all []recorded) []exchange {
	t.Helper()
	played := make([]exchange, len(all))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, r := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			if played[i], err = r.play(t.Context(), e); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return played
}

// recordings plays all that pass, and checks each.
func (e *edge) recordings(t *testing.T, all []recorded) {
	t.Helper()
	if routed(e.form) {
		// This one is answered from the configuration, which names models. It passes
		// in TestSameRecords.
		all = slices.DeleteFunc(slices.Clone(all), func(r recorded) bool { return r.name == "models-get" })
	}
	for i, x := range e.replay(t, all) {
		t.Run(all[i].name, func(t *testing.T) { e.check(t, all[i], x) })
	}
}

func (e *edge) check(t *testing.T, r recorded, x exchange) {
	t.Helper()
	wantBroken := r.script.End == testkit.EndTruncated || r.script.End == testkit.EndReset
	if x.Status != r.script.Status || x.Broken != wantBroken {
		t.Errorf("the client got status %d, broken %t; want %d, %t", x.Status, x.Broken, r.script.Status, wantBroken)
	}
	if want := r.script.Body(); !bytes.Equal(x.Body, want) {
		t.Errorf("the client got other bytes:\n%.400q, want\n%.400q", x.Body, want)
	}
	e.checkHeader(t, r.script.Header, x)
	up := e.upstream(t, x.id)
	if !bytes.Equal(up.Body, r.call.Body) {
		t.Errorf("the model server got other bytes:\n%.400q, want\n%.400q", up.Body, r.call.Body)
	}
	span, record := e.span(t, x.id), e.record(t, x.id)
	r.checkRecord(t, record)
	r.checkSpan(t, span, record)
	e.checkContext(t, span, up)
}

// checkHeader wants the client to get the model server's headers, beside what
// belongs to a connection and what Envoy and inferspan add.
func (e *edge) checkHeader(t *testing.T, sent []testkit.Header, x exchange) {
	t.Helper()
	want, got := http.Header{}, x.Header.Clone()
	for _, h := range sent {
		want.Add(h.Name, h.Value)
	}
	for _, name := range []string{"Date", "Server", "Content-Length", "Transfer-Encoding", "X-Request-Id", "X-Trace-Id", "X-Envoy-Upstream-Service-Time"} {
		want.Del(name)
		got.Del(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers of the response (-sent +got):\n%s", diff)
	}
	if got := x.Header.Get("X-Request-Id"); got != x.id {
		t.Errorf("the client got the x-request-id %q, sent %q", got, x.id)
	}
	if e.form == observe {
		return // there inferspan can't tell the client anything
	}
	if got := x.Header.Get("X-Trace-Id"); got != hex.EncodeToString(e.span(t, x.id).GetTraceId()) {
		t.Errorf("the client got the x-trace-id %q, the span is another trace's", got)
	}
}

func (r recorded) checkRecord(t *testing.T, record map[string]any) {
	t.Helper()
	want, got := map[string]any{}, map[string]any{}
	take := func(fields ...string) {
		for _, f := range fields {
			if v, ok := r.truth[f]; ok {
				want[f], got[f] = v, record[f]
			}
		}
	}
	take("outcome", "status", "bytes", "request_model", "stream", "events", "keep_alives", "choices", "finish", "model", "response_id",
		"prompt_tokens", "cached_tokens", "reasoning_tokens", "output_source", "first_token_kind", "server_metrics")
	if r.truth["output_source"] != "estimate" {
		take("output_tokens")
	}
	if v, ok := r.truth["evidence_events"].(map[string]any); ok {
		want["evidence_events"], got["evidence_events"] = byChoice(v), byChoice(record["evidence_events"])
	}
	for _, f := range []string{"role_us", "first_event_us", "first_token_us", "first_answer_us", "last_token_us"} {
		if v, ok := r.truth[f]; ok {
			want[f+" is there"], got[f+" is there"] = v != nil, record[f] != nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record differs from the truth (-want +got):\n%s", diff)
	}
}

// byChoice returns counts by choice as an object, in whichever form they came.
func byChoice(v any) map[string]any {
	all, ok := v.([]any)
	if !ok {
		m, _ := v.(map[string]any)
		return m
	}
	m := map[string]any{}
	for i, n := range all {
		m[fmt.Sprint(i)] = n
	}
	return m
}

// checkSpan wants the span to say what the record says.
func (r recorded) checkSpan(t *testing.T, span testkit.Span, record map[string]any) {
	t.Helper()
	if got := hex.EncodeToString(span.GetTraceId()); got != record["trace_id"] {
		t.Errorf("the span is in the trace %s, the record in %v", got, record["trace_id"])
	}
	want := map[string]any{"inferspan.outcome": record["outcome"]}
	for attr, field := range map[string]string{
		"gen_ai.response.id": "response_id", "gen_ai.response.model": "model",
		"gen_ai.request.model": "request_model", "inferspan.usage.source": "output_source",
		"inferspan.output_tokens": "output_tokens", "gen_ai.usage.input_tokens": "prompt_tokens",
	} {
		if v := record[field]; v != nil {
			want[attr] = v
		}
	}
	if record["output_source"] != "estimate" && record["output_tokens"] != nil {
		want["gen_ai.usage.output_tokens"] = record["output_tokens"]
	}
	got := map[string]any{}
	for attr, w := range want {
		v, _ := testkit.Attr(span.GetAttributes(), attr)
		if _, number := w.(float64); number {
			if i, ok := v.(int64); ok {
				v = float64(i)
			}
		}
		got[attr] = v
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the span differs from the record (-want +got):\n%s", diff)
	}
	wantEvents := 0
	if record["first_token_us"] != nil {
		wantEvents = 1
	}
	if n := len(testkit.SpanEvents(span, "inferspan.first_token")); n != wantEvents {
		t.Errorf("%d events inferspan.first_token, want %d", n, wantEvents)
	}
}

// checkContext wants the model server's span to become a child of ours where
// the form can do that, and the client's headers untouched where it can't.
func (e *edge) checkContext(t *testing.T, span testkit.Span, up testkit.Received) {
	t.Helper()
	want := ""
	if routed(e.form) {
		want = fmt.Sprintf("00-%x-%x-01", span.GetTraceId(), span.GetSpanId())
	}
	if got := strings.Join(up.Header.Values("traceparent"), " "); got != want {
		t.Errorf("traceparent at the model server: %q, want %q", got, want)
	}
	if got := up.Header.Get("x-inferspan-ctx"); got != "" {
		t.Errorf("what one filter tells the other reached the model server: %s", got)
	}
	if routed(e.form) {
		served, _ := testkit.Attr(span.GetAttributes(), "inferspan.served")
		endpoint, _ := testkit.Attr(span.GetAttributes(), "inferspan.endpoint")
		if served != endpoint || up.Header.Get("x-gateway-destination-endpoint") != endpoint {
			t.Errorf("endpoint %v, served %v, told %q; want them equal", endpoint, served, up.Header.Get("x-gateway-destination-endpoint"))
		}
	}
}

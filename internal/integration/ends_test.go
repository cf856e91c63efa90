//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestEnds has exchanges end in every way that only Envoy's access log can tell
// apart. Observed streams are left open for longer than any of this takes, so
// that it is the access log that ends them.
func TestEnds(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			settings := ""
			if watched(form) {
				e.adapt = strings.NewReplacer("deferred_close_timeout: 1s", "deferred_close_timeout: 600s")
				settings = "ext_proc: {deferred_close_timeout: 600s}\n"
			}
			e.startInferspan(settings + e.config("default"))
			e.startEnvoy()
			t.Run("client, before the response", e.leavesBeforeTheResponse)
			t.Run("client", e.leaves)
			t.Run("server", e.breaksOff)
			t.Run("one request id", e.oneRequestID)
			t.Run("all matched", e.allMatched)
		})
	}
}

// ended wants the record of an exchange that a client saw, with Envoy's account
// of its end.
func (e *edge) ended(t *testing.T, x exchange, outcome string) {
	t.Helper()
	r := e.record(t, x.id)
	route, _ := r["route"].(map[string]any)
	if r["outcome"] != outcome || r["sent_bytes"] != float64(len(x.Body)) || r["bytes"] != float64(len(x.Body)) ||
		route["attempts"] != 1.0 {
		t.Errorf("outcome %v, %v bytes seen, %v sent, %v attempts; want %s, %d, 1",
			r["outcome"], r["bytes"], r["sent_bytes"], route["attempts"], outcome, len(x.Body))
	}
}

// silent is a script whose response does not begin.
func silent(name string) testkit.Script {
	s := chatScript(name, nil)
	s.HeadAt = time.Hour
	return s
}

func (e *edge) leavesBeforeTheResponse(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	polled := make(chan error, 1)
	go func() {
		polled <- testkit.Poll(ctx, func(context.Context) error {
			for _, v := range e.vllm {
				if len(v.Received(func(r testkit.Received) bool { return strings.Contains(r.Header.Get("x-request-id"), "-silent-") })) > 0 {
					leave()
					return nil
				}
			}
			return errors.New("no server has the request")
		})
	}()
	x, err := e.play(ctx, silent("silent"), chatCall())
	if perr := <-polled; perr != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ended with %v, %v; want the client to leave", err, perr)
	}
	r := e.record(t, x.id)
	if r["outcome"] != "client_cancelled" || r["status"] != nil || r["first_token_us"] != nil {
		t.Errorf("outcome %v, status %v", r["outcome"], r["status"])
	}
}

// leaves has the client hang up in mid-stream, after the finish and after the
// end mark.
func (e *edge) leaves(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	whole := chatScript("leaves", nil)
	last, mark, _ := bytes.Cut(whole.Pieces[2].Data, []byte("data: [DONE]"))
	for outcome, pieces := range map[string][]testkit.Piece{
		"client_cancelled":              {whole.Pieces[0], whole.Pieces[1], {Data: last, After: never}},
		"client_cancelled_after_finish": {whole.Pieces[0], whole.Pieces[1], {Data: last}, {Data: mark, After: never}},
		"ok":                            {whole.Pieces[0], whole.Pieces[1], whole.Pieces[2], {Data: []byte(":\n\n"), After: never}},
	} {
		s, call := whole, chatCall()
		s.Pieces = pieces
		for _, p := range pieces {
			if p.After == nil {
				call.HangUpAfter += len(p.Data)
			}
		}
		x := e.mustPlay(t, s, call)
		if !x.HungUp {
			t.Fatalf("%s: the client did not hang up", outcome)
		}
		e.ended(t, x, outcome)
	}
}

// breaksOff has the server reset its connection, and close it before the end.
func (e *edge) breaksOff(t *testing.T) {
	for _, end := range []testkit.End{testkit.EndReset, testkit.EndTruncated} {
		arrived := make(chan struct{})
		s, call := chatScript("breaks-"+string(end), nil), chatCall()
		s.Pieces, s.End, s.EndAfter = s.Pieces[:2], end, arrived
		call.OnPiece = func(body []byte) {
			if len(body) == len(s.Body()) {
				close(arrived)
			}
		}
		x := e.mustPlay(t, s, call)
		if !x.Broken {
			t.Fatalf("%s: the answer did not break off", end)
		}
		e.ended(t, x, "upstream_reset")
	}
}

// oneRequestID has two exchanges with one id at a time, of which one is left by
// its client and one by its server.
func (e *edge) oneRequestID(t *testing.T) {
	goOn, left := make(chan struct{}), make(chan struct{})
	s := chatScript("twin", goOn)
	s.Pieces, s.End = s.Pieces[:2], testkit.EndReset
	const id = "twins"
	e.mu.Lock()
	e.scripts[id] = s
	e.mu.Unlock()
	call := chatCall()
	call.Header = append(call.Header, testkit.Header{Name: "x-request-id", Value: id})
	stays := call
	begun := make(chan struct{})
	stays.OnPiece = func(body []byte) {
		if len(body) == len(s.Pieces[0].Data) {
			close(begun)
		}
	}
	go func() {
		defer close(left)
		x, err := e.client.Do(t.Context(), stays)
		if err != nil || !x.Broken {
			t.Errorf("the one that stays: %v", err)
		}
	}()
	<-begun
	call.HangUpAfter = len(s.Pieces[0].Data)
	if _, err := e.client.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	<-left

	want, got := map[any]int{"client_cancelled": 1, "upstream_reset": 1}, map[any]int{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		records, err := e.inferspan.Lookup(ctx, id)
		if err != nil || len(records) < 2 {
			return fmt.Errorf("%d records: %w", len(records), err)
		}
		for _, r := range records {
			got[r["outcome"]]++
		}
		return nil
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; outcomes (-want +got):\n%s", err, diff)
	}
}

// allMatched stops inferspan and wants every entry to have found its exchange.
func (e *edge) allMatched(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.inferspan.Stop(ctx); err != nil {
		t.Errorf("inferspan did not end well: %v\n%s", err, e.inferspan.Log())
	}
	for _, m := range e.sink.Metrics("inferspan.telemetry.access_log.unmatched") {
		for _, p := range testkit.Points(m) {
			t.Errorf("%v entries settled no exchange: %v", p.Value, p.Attributes)
		}
	}
}

// TestEnvoyTimeouts has Envoy end exchanges by the times of its route. Before
// the response it answers itself.
func TestEnvoyTimeouts(t *testing.T) {
	for _, form := range forms {
		for name, adapt := range map[string]*strings.Replacer{
			"of the route": strings.NewReplacer("timeout: 0s", "timeout: 1s"),
			"idle":         strings.NewReplacer("idle_timeout: 1800s", "idle_timeout: 1s"),
		} {
			t.Run(form+" "+name, func(t *testing.T) {
				t.Parallel()
				e := newEdge(t, form)
				e.adapt = adapt
				e.startInferspan(e.config("default"))
				e.startEnvoy()
				never := make(chan struct{})
				defer close(never)
				x := e.mustPlay(t, chatScript("slow", never), chatCall())
				if !x.Broken {
					t.Fatal("Envoy did not end the answer")
				}
				e.ended(t, x, "timeout")
				end, _ := e.record(t, x.id)["end_us"].(float64)
				timedOut := x.id
				x = e.mustPlay(t, silent("silent"), chatCall())
				r := e.record(t, x.id)
				if x.Status < http.StatusInternalServerError || r["outcome"] != "http_error" || r["status"] != float64(x.Status) {
					t.Errorf("the client got %d, the record has outcome %v, status %v", x.Status, r["outcome"], r["status"])
				}
				if took := e.durations(t)[timedOut]; int(end)/1000 != took {
					t.Errorf("it ended after %v µs, Envoy says %d ms", end, took)
				}
			})
		}
	}
}

// durations ends Envoy, which writes what is left of its log, and returns how
// many milliseconds each request took by it.
func (e *edge) durations(t *testing.T) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.envoy.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	took := map[string]int{}
	for line := range strings.Lines(e.envoy.Log()) {
		var entry struct {
			RequestID string `json:"request_id"`
			Duration  int    `json:"duration_ms"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil {
			took[entry.RequestID] = entry.Duration
		}
	}
	return took
}

// TestLost stops inferspan's clock, so that a reply comes too late: Envoy goes on
// without it. The other forms know no such time.
func TestLost(t *testing.T) {
	e := newEdge(t, inline)
	e.adapt = strings.NewReplacer("message_timeout: 2s", "message_timeout: 1s")
	e.startInferspan(e.config("default"))
	e.startEnvoy()
	stopped, unseen := make(chan struct{}), make(chan struct{})
	s, call := chatScript("lost", stopped), chatCall()
	s.Pieces[2].After = unseen
	call.OnPiece = func(body []byte) {
		switch len(body) {
		case len(s.Pieces[0].Data):
			e.stop(e.inferspan.PID())
			close(stopped)
		case len(s.Pieces[0].Data) + len(s.Pieces[1].Data):
			close(unseen)
		}
	}
	x := e.mustPlay(t, s, call)
	e.must(syscall.Kill(e.inferspan.PID(), syscall.SIGCONT))
	if x.Broken || !bytes.Equal(x.Body, s.Body()) {
		t.Errorf("got %d of %d bytes, broken %t; want all of it", len(x.Body), len(s.Body()), x.Broken)
	}
	r := e.record(t, x.id)
	seen, _ := r["bytes"].(float64)
	if r["outcome"] != "lost" || r["sent_bytes"] != float64(len(x.Body)) || seen >= float64(len(x.Body)) {
		t.Errorf("outcome %v, %v bytes seen, %v sent", r["outcome"], r["bytes"], r["sent_bytes"])
	}
}

// stop stops the process, and returns when none of its threads runs any more.
func (e *edge) stop(pid int) {
	e.t.Helper()
	e.must(syscall.Kill(pid, syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	e.must(testkit.Poll(ctx, func(context.Context) error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, file := range threads {
			status, rerr := os.ReadFile(file)
			if rerr == nil && !bytes.Contains(status, []byte("State:\tT")) {
				err = errors.Join(err, fmt.Errorf("a thread runs: %.60q", status))
			}
		}
		return err
	}))
}

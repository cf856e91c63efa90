//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestModelThatNobodyServes needs a configuration without a pool that takes
// every model.
func TestModelThatNobodyServes(t *testing.T) {
	for _, form := range []string{inline, duplex, split, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(e.config("main"))
			e.startEnvoy()
			e.wantRejected(t, chatCall(), http.StatusNotFound)
			call := chatCall()
			call.Body = []byte(strings.Replace(tinyChat, `"tiny"`, `"renamed"`, 1))
			if x := e.mustPlay(t, chatScript("served", nil), call); x.Status != http.StatusOK {
				t.Errorf("a model that is served: status %d, want 200", x.Status)
			}
		})
	}
}

// emptyPool holds the bytes of a 503 as the delivered rules let them through.
func (e *edge) emptyPool(t *testing.T) {
	call := chatCall()
	call.Body = []byte(`{"model":"drained","messages":[]}`)
	x := e.wantRejected(t, call, http.StatusServiceUnavailable)
	want := "{\"error\":{\"message\":\"The pool `drained` has no endpoint. Try again later.\",\"type\":\"Service Unavailable\",\"param\":null,\"code\":503}}"
	if string(x.Body) != want || x.Header.Get("x-inferspan-reason") != "no_endpoint" || x.Header.Get("retry-after") == "" {
		t.Errorf("the answer is %s with %v, want %s", x.Body, x.Header, want)
	}
}

// TestShedding fills both servers, and holds the bytes of a 429 as the delivered
// rules let them through.
func TestShedding(t *testing.T) {
	for _, form := range []string{inline, duplex, split, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(strings.Replace(e.config("main"), "- {name: main,",
				"- {name: main, scrape: {enabled: false}, health: {enabled: false}, shed: {in_flight: 1, hard: {in_flight: 2}},", 1) +
				"trusted: {header: x-inferspan-secret, value: open}\n")
			e.startEnvoy()
			low := chatCall()
			low.Body = []byte(strings.Replace(tinyChat, `"tiny"`, `"renamed"`, 1))
			plain := low
			low.Header = append(low.Header, testkit.Header{Name: "x-inferspan-priority", Value: "-1"})
			spoofed := low
			low.Header = append(low.Header, testkit.Header{Name: "x-inferspan-secret", Value: "open"})

			served := func(name string, call testkit.Call) {
				x := e.mustPlay(t, chatScript("served", nil), call)
				if x.Status != http.StatusOK {
					t.Errorf("%s: status %d, want 200", name, x.Status)
				}
				e.record(t, x.id) // it is in flight no more
			}
			served("with room", low)
			defer e.fill(t, plain, 2)()
			e.wantShed(t, low)
			served("no priority, below the hard limit", plain)
			served("nobody's priority", spoofed)
			defer e.fill(t, plain, 2)()
			e.wantShed(t, plain)
		})
	}
}

// fill begins n exchanges, and returns what ends them.
func (e *edge) fill(t *testing.T, call testkit.Call, n int) (leave func()) {
	t.Helper()
	gate, begun := make(chan struct{}), make(chan struct{}, 100)
	var all sync.WaitGroup
	for range n {
		call.OnPiece = func([]byte) { begun <- struct{}{} }
		all.Go(func() {
			if x, err := e.play(t.Context(), chatScript("long", gate), call); err != nil || x.Status != http.StatusOK {
				t.Errorf("a long exchange: %v, %v", x, err)
			}
			begun <- struct{}{} // where it failed, nobody waits
		})
		<-begun
	}
	return func() { close(gate); all.Wait() }
}

func (e *edge) wantShed(t *testing.T, call testkit.Call) {
	t.Helper()
	x := e.wantRejected(t, call, http.StatusTooManyRequests)
	want := "{\"error\":{\"message\":\"The servers of the pool `main` have as much to do as they may. Try again in " + x.Header.Get("retry-after") +
		" s.\",\"type\":\"Too Many Requests\",\"param\":null,\"code\":429}}"
	if string(x.Body) != want || x.Header.Get("x-inferspan-reason") != "saturated" {
		t.Errorf("the answer is %s with %v, want %s", x.Body, x.Header, want)
	}
}

// wantRejected wants an answer of ours, whole and as JSON, and no request at a
// model server.
func (e *edge) wantRejected(t *testing.T, call testkit.Call, status int) exchange {
	t.Helper()
	x := e.mustPlay(t, testkit.Script{Name: "rejected", Status: http.StatusOK}, call)
	if x.Status != status {
		t.Errorf("status %d, want %d: %s", x.Status, status, x.Body)
	}
	if got := x.Header.Get("content-type"); got != "application/json" {
		t.Errorf("content-type %q, want application/json", got)
	}
	if got := x.Header.Get("content-length"); got != fmt.Sprint(len(x.Body)) {
		t.Errorf("content-length %q, want %d", got, len(x.Body))
	}
	if x.Header.Get("x-inferspan-reason") == "" {
		t.Error("no x-inferspan-reason")
	}
	again := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if s, err := strconv.Atoi(x.Header.Get("retry-after")); (err == nil && s >= 1 && s <= 60) != again {
		t.Errorf("retry-after %q of status %d", x.Header.Get("retry-after"), status)
	}
	var answer struct {
		Error struct {
			Message, Type string
			Code          any
		}
	}
	if err := json.Unmarshal(x.Body, &answer); err != nil || answer.Error.Message == "" || answer.Error.Type == "" {
		t.Errorf("the answer is no OpenAI error: %v: %s", err, x.Body)
	}
	for _, v := range e.vllm {
		if n := len(v.Received(func(r testkit.Received) bool { return r.Header.Get("x-request-id") == x.id })); n != 0 {
			t.Errorf("the request reached a model server %d times", n)
		}
	}
	if got := e.record(t, x.id)["outcome"]; got != "rejected" {
		t.Errorf("outcome %v, want rejected", got)
	}
	e.span(t, x.id)
	return x
}

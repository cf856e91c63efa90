//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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

func (e *edge) emptyPool(t *testing.T) {
	call := chatCall()
	call.Body = []byte(`{"model":"drained","messages":[]}`)
	e.wantRejected(t, call, http.StatusServiceUnavailable)
}

// wantRejected wants an answer of ours, whole and as JSON, and no request at a
// model server.
func (e *edge) wantRejected(t *testing.T, call testkit.Call, status int) {
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
}

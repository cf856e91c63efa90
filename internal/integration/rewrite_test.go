//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestRewrite asks real Envoys for a model that its servers know by another name.
// One of them has the response BUFFERED, which no delivered configuration does.
func TestRewrite(t *testing.T) {
	for name, form := range map[string]string{"inline": inline, "duplex": duplex, "buffered response": inline} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			if name == "buffered response" {
				e.adapt = strings.NewReplacer("response_body_mode: STREAMED", "response_body_mode: BUFFERED")
			}
			e.startInferspan(e.config("default") + "request: {hold_limit: 256KiB}\n")
			e.startEnvoy()
			t.Run("put back", e.putBack)
			t.Run("coded", e.codedAnswer)
			t.Run("several models", e.severalModels)
			t.Run("model last", e.modelLast)
			if streams(form) {
				t.Run("as it comes", e.decidedEarly)
			}
			t.Run("exactly once", e.exactlyOnce)
		})
	}
}

const (
	asTiny    = `"model":"tiny"`
	asRenamed = `"model":"renamed"`
)

// putBack replays what was recorded of a server that knows the model as tiny to
// clients that ask for it as renamed: they read no other name, and the record does.
func (e *edge) putBack(t *testing.T) {
	for _, name := range []string{
		"chat-usage", "chat-json", "chat-n2", "comp-usage", "comp-json", "responses-stream", "responses-json", "messages-stream", "messages-json",
	} {
		call, s := recordedAs(t, name)
		served := string(call.Body)
		call.Body = []byte(strings.Replace(served, asTiny, asRenamed, 1))
		call.Header = append(call.Header, testkit.Header{Name: "accept-encoding", Value: "gzip"})
		x := e.mustPlay(t, s, call)
		want := strings.ReplaceAll(string(s.Body()), asTiny, asRenamed)
		if diff := cmp.Diff(want, string(x.Body)); diff != "" || x.Broken || want == string(s.Body()) {
			t.Errorf("%s: broken %t, the client's bytes (-want +got):\n%s", name, x.Broken, diff)
		}
		up := e.upstream(t, x.id)
		if string(up.Body) != served {
			t.Errorf("%s: the model server got %s, want %s", name, up.Body, served)
		}
		if got := up.Header.Get("accept-encoding"); got != "identity" {
			t.Errorf("%s: the model server got accept-encoding %q", name, got)
		}
		if r := e.record(t, x.id); r["request_model"] != "renamed" || r["model"] != "tiny" || r["outcome"] != "ok" {
			t.Errorf("%s: request_model %v, model %v, outcome %v", name, r["request_model"], r["model"], r["outcome"])
		}
	}
}

// codedAnswer passes what a server compresses though it was asked not to.
func (e *edge) codedAnswer(t *testing.T) {
	call := chatCall()
	call.Body = []byte(strings.Replace(tinyChat, asTiny, asRenamed, 1))
	s := chatScript("coded", nil)
	s.Header = append(s.Header, testkit.Header{Name: "content-encoding", Value: "zstd"})
	s.Pieces = []testkit.Piece{{Data: []byte("\x28\xb5\x2f\xfd no frame, " + asTiny)}}
	if x := e.mustPlay(t, s, call); !bytes.Equal(x.Body, s.Body()) || x.Broken {
		t.Errorf("broken %t, the client got %q", x.Broken, x.Body)
	}
}

// severalModels names two: the server reads the one that was decided on, which is
// the last, unless it comes when the first was decided on already.
func (e *edge) severalModels(t *testing.T) {
	for _, tt := range []struct {
		prompt        int
		whole, stream string // what the server reads
	}{{10, "other", "other"}, {3 << 20, "other", "tiny"}} {
		call := chatCall()
		call.Body = fmt.Appendf(nil, `{"ren":1,"mod\u0065l":"ren\u0061med","messages":[{"role":"user","content":%q}],"model":"other"}`, strings.Repeat("x", tt.prompt))
		x := e.mustPlay(t, chatScript("several", nil), call)
		var body struct{ Model string }
		if err := json.Unmarshal(e.upstream(t, x.id).Body, &body); err != nil {
			t.Fatal(err)
		}
		want, reason := tt.whole, "default"
		if streams(e.form) {
			want = tt.stream
		}
		if want == "tiny" {
			reason = "model"
		}
		r := e.record(t, x.id)
		if got := r["route"].(map[string]any)["reason"]; body.Model != want || got != reason {
			t.Errorf("with a prompt of %d bytes the server reads %q, routed by %v; want %q, by %q", tt.prompt, body.Model, got, want, reason)
		}
	}
}

// modelLast holds a request for its model, up to the limit.
func (e *edge) modelLast(t *testing.T) {
	ask := func(prompt int) exchange {
		call := chatCall()
		call.Body = []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", prompt) + `"}],"stream":true,` + asRenamed + `}`)
		return e.mustPlay(t, chatScript("last", nil), call)
	}
	x := ask(200 << 10)
	if up := e.upstream(t, x.id); x.Status != http.StatusOK || !bytes.HasSuffix(up.Body, []byte(asTiny+"}")) {
		t.Errorf("status %d, the model server got …%s", x.Status, up.Body[len(up.Body)-40:])
	}
	x = ask(2 << 20)
	want := http.StatusOK
	if streams(e.form) {
		want = http.StatusRequestEntityTooLarge
	}
	if x.Status != want {
		t.Errorf("beyond the limit: status %d, want %d: %s", x.Status, want, x.Body)
	}
}

// decidedEarly sends a request of 100 MB that stands still after its model: Envoy
// opens the request to the model server before the rest comes.
func (e *edge) decidedEarly(t *testing.T) {
	e.mu.Lock()
	e.scripts["early"] = chatScript("early", nil)
	e.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	send := func(format string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(conn, format, args...); err != nil {
			t.Fatal(err)
		}
	}
	chunk := func(data string) {
		t.Helper()
		send("%x\r\n%s\r\n", len(data), data)
	}
	before, err := e.envoy.Stat(t.Context(), "cluster.vllm.upstream_rq_total")
	if err != nil {
		t.Fatal(err)
	}
	send("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: early\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
	chunk("{" + asRenamed + `,"messages":[{"role":"user","content":"`)
	err = testkit.Poll(t.Context(), func(ctx context.Context) error {
		after, err := e.envoy.Stat(ctx, "cluster.vllm.upstream_rq_total")
		if err == nil && after == before {
			err = errors.New("the model server got no request yet")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const pieces = 100
	piece := strings.Repeat("y", 1<<20)
	for range pieces {
		chunk(piece)
	}
	chunk(`"}],"model":"other"}`)
	send("0\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if want := bytes.ReplaceAll(chatScript("", nil).Body(), []byte(asTiny), []byte(asRenamed)); err != nil || !bytes.Equal(body, want) {
		t.Errorf("status %d, the client got %s: %v", answer.StatusCode, body, err)
	}
	up := e.upstream(t, "early")
	want := len("{"+asTiny+`,"messages":[{"role":"user","content":"`) + pieces<<20 + len(`"}],`+asTiny+"}")
	if len(up.Body) != want || !bytes.HasSuffix(up.Body, []byte(`y"}],`+asTiny+"}")) {
		t.Errorf("the model server got %d bytes, want %d, that end with %s", len(up.Body), want, up.Body[len(up.Body)-30:])
	}
}

//go:build integration

package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestForms runs all that has to hold with the processor alive, on one Envoy
// for each configuration.
func TestForms(t *testing.T) {
	all := recordings(t)
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, form)
			t.Run("recordings", func(t *testing.T) { e.recordings(t, all) })
			t.Run("trailers", e.trailers)
			t.Run("two set-cookie", e.cookies)
			t.Run("spoofed destination", e.spoofed)
			t.Run("5 MB request", e.largeRequest)
			t.Run("beyond the buffer", e.beyondTheBuffer)
			t.Run("other paths", e.otherPaths)
			t.Run("multipart", e.multipart)
			if routed(form) {
				t.Run("rewrite", e.rewrite)
				t.Run("empty pool", e.emptyPool)
				t.Run("models", e.models)
			}
			t.Run("exactly once", e.exactlyOnce)
			t.Run("access log", e.accessLog)
		})
	}
}

// trailers come over HTTP/2 with the request, and with the response where the
// configuration lets them through.
func (e *edge) trailers(t *testing.T) {
	s, call := chatScript("trailers", nil), chatCall()
	s.Trailer = []testkit.Header{{Name: "x-checksum", Value: "7"}}
	call.Chunked, call.Trailer = true, []testkit.Header{{Name: "x-signature", Value: "9"}}
	x, err := e.playBy(t.Context(), e.client2, s, call)
	if err != nil {
		t.Fatal(err)
	}
	if x.Status != http.StatusOK || x.Broken || !bytes.Equal(x.Body, s.Body()) {
		t.Errorf("status %d, %d bytes, broken %t", x.Status, len(x.Body), x.Broken)
	}
	up := e.upstream(t, x.id)
	if !bytes.Equal(up.Body, call.Body) {
		t.Errorf("the model server got the body %q", up.Body)
	}
	if streams(e.form) {
		if got := x.Trailer.Get("x-checksum"); got != "7" {
			t.Errorf("trailer of the response: %q, want 7", got)
		}
		if got := up.Trailer.Get("x-signature"); got != "9" {
			t.Errorf("trailer of the request: %q, want 9", got)
		}
	}
	if got := e.record(t, x.id)["outcome"]; got != "ok" {
		t.Errorf("outcome %v, want ok", got)
	}
}

func (e *edge) cookies(t *testing.T) {
	s := chatScript("cookies", nil)
	s.Header = append(s.Header, testkit.Header{Name: "set-cookie", Value: "a=1; Path=/"}, testkit.Header{Name: "set-cookie", Value: "b=2"})
	x := e.mustPlay(t, s, chatCall())
	if diff := cmp.Diff([]string{"a=1; Path=/", "b=2"}, x.Header.Values("set-cookie")); diff != "" {
		t.Errorf("cookies (-want +got):\n%s", diff)
	}
	e.record(t, x.id)
}

// spoofed has the client name a destination: it goes where it would have gone.
func (e *edge) spoofed(t *testing.T) {
	elsewhere, connections := trap(t)
	call := chatCall()
	for _, name := range controlHeaders {
		call.Header = append(call.Header, testkit.Header{Name: name, Value: elsewhere})
	}
	x := e.mustPlay(t, chatScript("spoofed", nil), call)
	if x.Status != http.StatusOK {
		t.Errorf("status %d, want 200: %s", x.Status, x.Body)
	}
	up := e.upstream(t, x.id)
	for _, name := range controlHeaders {
		if got := up.Header.Get(name); got == elsewhere {
			t.Errorf("the client's %s: %s reached the model server", name, got)
		}
	}
	if n := connections(); n != 0 {
		t.Errorf("%d connections to the address that the client named, want none", n)
	}
	e.checkContext(t, e.span(t, x.id), up)
}

func (e *edge) largeRequest(t *testing.T) {
	body := `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("five megabytes ", 350_000) + `"}]}`
	for _, chunked := range []bool{false, true} {
		call := chatCall()
		call.Body, call.Chunked = []byte(body), chunked
		x := e.mustPlay(t, chatScript("large", nil), call)
		if x.Status != http.StatusOK {
			t.Fatalf("chunked %t: status %d: %s", chunked, x.Status, x.Body)
		}
		if up := e.upstream(t, x.id); !bytes.Equal(up.Body, call.Body) {
			t.Errorf("chunked %t: the model server got %d other bytes, want the %d", chunked, len(up.Body), len(body))
		}
		if got := e.record(t, x.id)["request_model"]; got != "tiny" {
			t.Errorf("chunked %t: request_model %v, want tiny", chunked, got)
		}
	}
}

// beyondTheBuffer sends what no BUFFERED request may have: Envoy answers itself.
func (e *edge) beyondTheBuffer(t *testing.T) {
	call := chatCall()
	call.Body = []byte(`{"model":"tiny","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 34<<20) + `"}]}`)
	x := e.mustPlay(t, chatScript("beyond", nil), call)
	status, outcome := http.StatusOK, "ok"
	if whole(e.form) {
		status, outcome = http.StatusRequestEntityTooLarge, "http_error"
	}
	if x.Status != status {
		t.Fatalf("status %d, want %d: %s", x.Status, status, x.Body)
	}
	if got := e.record(t, x.id)["outcome"]; got != outcome {
		t.Errorf("outcome %v, want %v", got, outcome)
	}
	if status != http.StatusOK {
		return
	}
	if up := e.upstream(t, x.id); !bytes.Equal(up.Body, call.Body) {
		t.Errorf("the model server got %d other bytes, want the %d", len(up.Body), len(call.Body))
	}
}

// otherPaths pass without the processor.
func (e *edge) otherPaths(t *testing.T) {
	upload := bytes.Repeat([]byte("0123456789abcdef"), 50<<20/16)
	for _, path := range []string{"/upload", "/v1/files"} {
		s := testkit.Script{Name: "upload", Status: http.StatusCreated}
		x := e.mustPlay(t, s, testkit.Call{Method: http.MethodPost, Path: path, Body: upload})
		if x.Status != http.StatusCreated {
			t.Fatalf("%s: status %d: %s", path, x.Status, x.Body)
		}
		if up := e.upstream(t, x.id); sha256.Sum256(up.Body) != sha256.Sum256(upload) {
			t.Errorf("%s: the model server got %d other bytes, want the %d", path, len(up.Body), len(upload))
		}
		e.unmeasured(x.id)
	}
	for _, path := range []string{"/ws", "/v1/realtime"} {
		conn, err := testkit.Upgrade(t.Context(), e.addr, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []string{"hello", strings.Repeat("x", 1<<16)} {
			got := make([]byte, len(message))
			if _, err := io.WriteString(conn, message); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != message {
				t.Errorf("%s: %d bytes came back other than sent: %v", path, len(got), err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (e *edge) rewrite(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		call := chatCall()
		call.Body, call.Chunked = []byte(strings.Replace(tinyChat, `"tiny"`, `"renamed"`, 1)), chunked
		x := e.mustPlay(t, chatScript("rewrite", nil), call)
		if x.Status != http.StatusOK {
			t.Fatalf("chunked %t: status %d: %s", chunked, x.Status, x.Body)
		}
		up := e.upstream(t, x.id)
		if string(up.Body) != tinyChat {
			t.Errorf("chunked %t: the model server got %s, want %s", chunked, up.Body, tinyChat)
		}
		if up.ContentLength >= 0 && up.ContentLength != int64(len(tinyChat)) {
			t.Errorf("chunked %t: content-length %d, want %d", chunked, up.ContentLength, len(tinyChat))
		}
		if whole(e.form) && !chunked && up.ContentLength < 0 {
			t.Error("the content-length was lost")
		}
		if got := e.record(t, x.id)["request_model"]; got != "renamed" {
			t.Errorf("chunked %t: request_model %v, want renamed", chunked, got)
		}
	}
}

// multipart asks for a transcription as the examples of clients do, the file first:
// the model is read behind it, and nothing is changed, its name neither.
func (e *edge) multipart(t *testing.T) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	file, err := w.CreateFormFile("file", "a.wav")
	if err == nil {
		_, err = file.Write(bytes.Repeat([]byte("RIFF\r\n--\x00"), 30_000))
	}
	err = errors.Join(err, w.WriteField("model", "renamed"), w.WriteField("stream", "true"), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	for _, chunked := range []bool{false, true} {
		x := e.mustPlay(t, chatScript("multipart", nil), testkit.Call{
			Method: http.MethodPost, Path: "/v1/audio/transcriptions", Body: body.Bytes(), Chunked: chunked,
			Header: []testkit.Header{{Name: "content-type", Value: w.FormDataContentType()}},
		})
		if x.Status != http.StatusOK {
			t.Fatalf("chunked %t: status %d: %s", chunked, x.Status, x.Body)
		}
		if up := e.upstream(t, x.id); !bytes.Equal(up.Body, body.Bytes()) {
			t.Errorf("chunked %t: the model server got %d bytes, not the %d that were sent", chunked, len(up.Body), body.Len())
		}
		r := e.record(t, x.id)
		if r["request_model"] != "renamed" || r["outcome"] != "ok" {
			t.Errorf("chunked %t: request_model %v, outcome %v", chunked, r["request_model"], r["outcome"])
		}
		reason, _ := r["route"].(map[string]any)["reason"].(string)
		if want := map[bool]string{true: "model", false: "unrouted"}[routed(e.form)]; reason != want {
			t.Errorf("chunked %t: routed by %q, want %q", chunked, reason, want)
		}
	}
}

// exactlyOnce stops inferspan and wants one span and one count for every
// exchange, none for what passed unseen, and nothing that Envoy complains of.
func (e *edge) exactlyOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, filter := range stats(e.form) {
		for _, name := range []string{"streams_failed", "failure_mode_allowed", "spurious_msgs_received", "message_timeouts", "rejected_header_mutations"} {
			n, err := e.envoy.Stat(ctx, filter+name)
			if err != nil {
				t.Fatal(err)
			}
			if n != 0 {
				t.Errorf("Envoy counts %d %s%s, want none", n, filter, name)
			}
		}
		if n, err := e.envoy.Stat(ctx, filter+"streams_started"); err != nil || n == 0 {
			t.Errorf("Envoy counts %d %sstreams_started, %v: the counters above have other names", n, filter, err)
		}
	}
	if err := e.inferspan.Stop(ctx); err != nil {
		t.Errorf("inferspan did not end well: %v\n%s", err, e.inferspan.Log())
	}
	spans := map[string]int{}
	for _, s := range e.sink.Spans(func(testkit.Span) bool { return true }) {
		if _, ok := testkit.Attr(s.GetAttributes(), "inferspan.outcome"); ok {
			id, _ := testkit.Attr(s.GetAttributes(), "inferspan.request.id")
			spans[fmt.Sprint(id)]++
		}
	}
	want := map[string]int{}
	e.mu.Lock()
	for id := range e.scripts {
		if !e.unseen[id] {
			want[id] = 1
		}
	}
	e.mu.Unlock()
	if diff := cmp.Diff(want, spans); diff != "" {
		t.Errorf("spans with an outcome by request id (-want +got):\n%s", diff)
	}
	exports := e.sink.Metrics("inferspan.requests")
	if len(exports) == 0 {
		t.Fatal("no metric inferspan.requests")
	}
	counted := 0.0
	for _, p := range testkit.Points(exports[len(exports)-1]) {
		counted += p.Value
	}
	if counted != float64(len(want)) {
		t.Errorf("inferspan.requests counts %v exchanges, want %d", counted, len(want))
	}
}

// accessLog ends Envoy, which writes what is left of its log, and wants an entry
// for every exchange, with the trace to look up where inferspan could tell it.
func (e *edge) accessLog(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.envoy.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	e.mu.Lock()
	for id := range e.scripts {
		want[id] = ""
	}
	e.mu.Unlock()
	if routed(e.form) {
		for _, s := range e.sink.Spans(func(testkit.Span) bool { return true }) {
			if id, ok := testkit.Attr(s.GetAttributes(), "inferspan.request.id"); ok {
				want[fmt.Sprint(id)] = hex.EncodeToString(s.GetTraceId())
			}
		}
	}
	for line := range strings.Lines(e.envoy.Log()) {
		var entry struct {
			Path      string `json:"path"`
			Status    int    `json:"status"`
			RequestID string `json:"request_id"`
			Inferspan struct {
				TraceID string `json:"trace_id"`
			} `json:"inferspan"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Path == "/ws" || entry.Path == "/v1/realtime" {
			continue
		}
		if entry.Status == http.StatusRequestEntityTooLarge {
			delete(want, entry.RequestID) // Envoy answered before there was a decision to tell
			continue
		}
		got[entry.RequestID] = entry.Inferspan.TraceID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traces in the access log by request id (-want +got):\n%s", diff)
	}
}

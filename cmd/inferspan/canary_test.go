package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/inferspan/inferspan/internal/testkit"
)

// canary marks what must never come out, with where it went in.
const canary = "canary-"

// marked are exchanges with a mark wherever content or credentials can stand:
// the request's body, the response's status and the pieces of its body.
var marked = []struct {
	id, body, status, kind string
	pieces                 []string
}{
	{"plain", `{"model":"llama","stream":true,"user":"canary-user","prompt_cache_key":"canary-conversation","metadata":{"k":"canary-metadata"},"messages":[{"role":"user","content":"canary-prompt"}],"tools":[{"function":{"name":"canary-tool"}}]}`,
		"200", "text/event-stream", []string{
			": canary-comment\n\n",
			`data: {"id":"chatcmpl-plain","model":"llama","choices":[{"index":0,"delta":{"role":"assistant","reasoning":"canary-reasoning"}}]}` + "\n\n",
			`data: {"id":"chatcmpl-plain","model":"llama","choices":[{"index":0,"delta":{"content":"canary-completion"}}]}` + "\n\n",
			`data: {"id":"chatcmpl-plain","model":"llama","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"canary-call","arguments":"canary-arguments"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			`data: {"canary-broken` + "\n\n", endMark,
		}},
	{"refused", `{"model":"llama","messages":[{"role":"user","content":"canary-prompt"}]}`,
		"400", "application/json", []string{`{"error":{"message":"canary-message","type":"BadRequestError","param":"canary-param"}}`}},
	{"failed", `{"model":"llama","stream":true,"messages":[{"role":"user","content":"canary-prompt"}]}`,
		"200", "text/event-stream", []string{
			`data: {"error":{"message":"canary-message","type":"InternalServerError"}}` + "\n\n", endMark,
		}},
	{"garbled", `{"model":"llama","canary-key":"canary-value`, "500", "text/plain", []string{"canary-text"}},
}

// markedHead are the headers of a request, with a mark in each that is not ours.
func markedHead(id string) *extprocv3.ProcessingRequest {
	m := requestHeaders(filterv3.ProcessingMode_BUFFERED)
	m.Request = &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(
		":method", "POST", ":path", "/v1/chat/completions?key=canary-query#canary-fragment", ":authority", "canary-host",
		"content-type", "application/json", "x-request-id", id,
		"authorization", "Bearer canary-token", "proxy-authorization", "canary-proxy", "cookie", "s=canary-cookie",
		"x-api-key", "canary-key", "api-key", "canary-key", "x-goog-api-key", "canary-key", "x-team", "canary-team", "x-session-id", "canary-session",
		"user-agent", "canary-agent", "baggage", "user=canary-baggage", "x-forwarded-for", "canary-address",
		"x-inferspan-ctx", "canary-context", "x-inferspan-secret", "canary-secret", "x-inferspan-slo-ttft-ms", "1", "x-gateway-destination-endpoint", "canary-endpoint",
	)}
	return m
}

// No span, metric, line of log, record or page shows what clients asked, what
// they were answered, or who they are.
func TestNothingOfTheContentComesOut(t *testing.T) {
	sink, err := testkit.NewSink()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	for _, pair := range sink.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	s := startServe(t, atAnyPort+onePool+"log: {level: debug}\ntrace: {detail: events, events: both, engine_spans: on}\n"+
		"metrics: {client: genai-0.1}\ntrusted: {header: x-inferspan-secret, value: canary-secret}\n")
	conn := dial(t, s.listen, insecure.NewCredentials())
	for _, m := range marked {
		stream := openStream(t, conn)
		stream.ask(markedHead(m.id))
		stream.ask(requestBody(m.body))
		stream.ask(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(
			":status", m.status, "content-type", m.kind, "set-cookie", "s=canary-set-cookie", "x-other", "canary-response")}})
		for i, piece := range m.pieces {
			stream.ask(responseBody(piece, i == len(m.pieces)-1))
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the end of the stream: %v", m.id, err)
		}
	}

	said := map[string]string{}
	for _, m := range marked {
		r := inferspan(t, "lookup", m.id, "--admin", s.admin)
		said["waterfall of "+m.id] = r.Stdout + r.Stderr
		r = inferspan(t, "lookup", m.id, "--admin", s.admin, "--json")
		said["record of "+m.id] = r.Stdout + r.Stderr
	}
	for _, path := range []string{"/metrics", "/", "/api/v1/requests", "/api/v1/streams", "/api/v1/requests/none"} {
		_, said[path] = ask(t, s.admin+path)
	}
	s.stop()
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for line := range s.logs {
		if line["msg"] == exited {
			break
		}
		said["log"] += fmt.Sprintln(line)
	}
	spans := 0
	for _, span := range sink.Spans(func(testkit.Span) bool { return true }) {
		spans++
		said["spans"] += span.String() + fmt.Sprintln(span.Resource)
	}
	for _, l := range sink.Logs() {
		said["log records"] += l.String()
	}
	for _, name := range []string{"inferspan.requests", "gen_ai.server.request.duration", "inferspan.no_first_token"} {
		for _, m := range sink.Metrics(name) {
			said["metrics"] += m.String()
		}
	}

	for where, text := range said {
		if at := strings.Index(strings.ToLower(text), canary); at >= 0 {
			t.Errorf("%s: %.60q", where, text[at:])
		}
	}
	// What is looked through has to be there.
	for where, want := range map[string]string{
		"spans": "chatcmpl-plain", "log records": "inferspan.first_token", "metrics": "llama", "log": "exchange failed",
		"/metrics": "llama", "record of plain": "chatcmpl-plain", "waterfall of failed": "error_in_stream",
	} {
		if !strings.Contains(said[where], want) {
			t.Errorf("%s: no %s in %.300q", where, want, said[where])
		}
	}
	if spans < len(marked) {
		t.Errorf("%d spans, want %d or more", spans, len(marked))
	}
}

package budget

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/inferspan/inferspan/internal/testkit"
)

// step is one message of Envoy's, as it goes over the wire, and how many replies
// are to come before the next one.
type step struct {
	message []byte
	replies int
}

// form is how the filter is configured.
type form struct {
	observe bool
	request filter.ProcessingMode_BodySendMode // where it is not observe
}

// maker makes the messages of one exchange as Envoy 1.40 sends them.
type maker struct {
	b     *testing.B
	form  form
	steps []step
}

func (m *maker) add(in *extproc.ProcessingRequest, replies int) {
	m.b.Helper()
	in.MetadataContext = &core.Metadata{} // is on every message, empty
	in.ObservabilityMode = m.form.observe
	if m.form.observe {
		replies = 0
	} else if len(m.steps) == 0 {
		in.ProtocolConfig = &extproc.ProtocolConfiguration{
			RequestBodyMode: m.form.request, ResponseBodyMode: filter.ProcessingMode_STREAMED,
		}
	}
	message, err := proto.Marshal(in)
	if err != nil {
		m.b.Fatal(err)
	}
	m.steps = append(m.steps, step{message, replies})
}

func (m *maker) attributes(pairs map[string]any) map[string]*structpb.Struct {
	m.b.Helper()
	s, err := structpb.NewStruct(pairs)
	if err != nil {
		m.b.Fatal(err)
	}
	return map[string]*structpb.Struct{"envoy.filters.http.ext_proc": s}
}

// What is in the place of an exchange's own id and time in the messages that are
// made once.
const (
	anyID      = "a8bd9a3e-4f2b-9bbd-a111-cb2d3f1c3b51"
	anyTime    = "2026-12-01T10:10:22.081548+00:00"
	timeFormat = "2006-01-02T15:04:05.000000+00:00"
)

var serial atomic.Int64

// fresh is a message with an id and the time of its own.
func fresh(message []byte) []byte {
	if !bytes.Contains(message, []byte(anyID)) {
		return message
	}
	id := fmt.Appendf(nil, "a8bd9a3e-4f2b-9bbd-a111-%012x", serial.Add(1))
	now := time.Now().UTC().AppendFormat(nil, timeFormat)
	return bytes.ReplaceAll(bytes.ReplaceAll(message, []byte(anyID), id), []byte(anyTime), now)
}

// request makes the messages of a request whose body comes in frames of at most
// frame bytes.
func (m *maker) request(body []byte, frame int) {
	m.b.Helper()
	duplex := m.form.request == filter.ProcessingMode_FULL_DUPLEX_STREAMED
	replies := 1
	if duplex {
		replies = 0 // comes with the first of the body
	}
	m.add(&extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{Headers: headers(
			":authority", "inference.example.com", ":path", "/v1/chat/completions", ":method", "POST", ":scheme", "http",
			"content-type", "application/json", "accept", "application/json", "accept-encoding", "gzip, deflate",
			"authorization", "Bearer sk-0000000000000000000000000000000000000000000000", "user-agent", "OpenAI/Python 2.9.0",
			"x-stainless-lang", "python", "x-stainless-package-version", "2.9.0", "x-stainless-os", "Linux",
			"x-forwarded-for", "10.0.0.7", "x-forwarded-proto", "http", "x-envoy-internal", "true",
			"x-request-id", anyID,
		)}},
		Attributes: m.attributes(map[string]any{
			"request.time": anyTime,
			"request.id":   anyID,
		}),
	}, replies)
	for first := true; first || len(body) > 0; first = false {
		n := min(frame, len(body))
		replies := 1
		if first && duplex {
			replies = 2
		}
		m.add(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
			RequestBody: &extproc.HttpBody{Body: body[:n], EndOfStream: n == len(body)},
		}}, replies)
		body = body[n:]
	}
}

// response makes the messages of a response that comes in pieces.
func (m *maker) response(contentType string, pieces [][]byte) {
	m.b.Helper()
	m.add(&extproc.ProcessingRequest{
		Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{Headers: headers(
			":status", "200", "date", "Tue, 01 Dec 2026 10:00:00 GMT", "server", "uvicorn", "content-type", contentType,
			"transfer-encoding", "chunked", "x-envoy-upstream-service-time", "12",
		)}},
		Attributes: m.attributes(map[string]any{
			"response.code": 200.0, "response.code_details": "via_upstream", "response.flags": 0.0,
			"upstream.address": "127.0.0.1:8001", "upstream.request_attempt_count": 1.0,
		}),
	}, 1)
	for _, p := range append(pieces, nil) {
		m.add(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
			ResponseBody: &extproc.HttpBody{Body: p, EndOfStream: p == nil},
		}}, 1)
	}
}

func headers(pairs ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

// prompt is a chat request of about size bytes.
func prompt(size int) []byte {
	const text = "What the \\\"fleet\\\" did, and which part of it was slow.\\nSecond line, 100 % plain. "
	begin := `{"model":"llama","stream":true,"max_tokens":512,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"`
	end := `"}],"temperature":0.7,"stream_options":{"include_usage":true}}`
	n := max(1, (size-len(begin)-len(end))/len(text))
	return []byte(begin + strings.Repeat(text, n) + end)
}

// answer is a whole answer to a chat request that does not stream.
func answer() [][]byte {
	return [][]byte{fmt.Appendf(nil, `{"id":"chatcmpl-%032d","object":"chat.completion","created":1764583200,"model":"llama","choices":[{"index":0,"message":{"role":"assistant","content":"Nothing was slow."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"total_tokens":17,"completion_tokens":5}}`, 7)}
}

// stream is the recorded stream of that name, one event a piece, as vLLM sends
// it.
func stream(b *testing.B, name string) [][]byte {
	b.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		b.Fatal(err)
	}
	_, script, err := testkit.ReadRecording(filepath.Join(root, "internal", "testkit", "testdata", "streams", name+".jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	var pieces [][]byte
	for event := range strings.SplitAfterSeq(string(script.Body()), "\n\n") {
		if event != "" {
			pieces = append(pieces, []byte(event))
		}
	}
	return pieces
}

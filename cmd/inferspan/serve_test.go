package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/inferspan/inferspan/processor/wire"
)

// logLine is one line of the log.
type logLine map[string]any

// logLines is a writer of JSON log lines, each of one write.
type logLines chan logLine

func (l logLines) Write(line []byte) (int, error) {
	var fields logLine
	if err := json.Unmarshal(line, &fields); err != nil {
		fields = logLine{"msg": string(line)}
	}
	l <- fields
	return len(line), nil
}

// exited is the message of the line that stands for the end of the program.
const exited = "exited"

// await returns the next line whose message is msg.
func (l logLines) await(t *testing.T, msg string) logLine {
	t.Helper()
	var seen []string
	for line := range l {
		switch line["msg"] {
		case msg:
			return line
		case exited:
			t.Fatalf("it ended without a log line %q, but with\n%s", msg, strings.Join(seen, "\n"))
		}
		seen = append(seen, fmt.Sprint(line))
	}
	return nil
}

// served is a `serve` that runs in this process.
type served struct {
	file          string // the configuration
	logs          logLines
	listen, admin string // where it does, as logged
	stop          context.CancelFunc
	exit          chan int
}

// startServe starts one and returns when it is ready.
func startServe(t *testing.T, text string) *served {
	t.Helper()
	return launchServe(t, text, "ready")
}

// launchServe starts one and returns when it logs msg.
func launchServe(t *testing.T, text, msg string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{logs: make(logLines, 1000), stop: cancel, exit: make(chan int, 1)}
	file := write(t, "admin: 127.0.0.1:0\n"+text)
	s.file = file
	go func() {
		s.exit <- run(ctx, []string{"serve", "--config", file}, io.Discard, s.logs)
		s.logs <- logLine{"msg": exited}
	}()
	t.Cleanup(func() {
		s.stop()
		<-s.exit
	})
	line := s.logs.await(t, msg)
	s.listen, s.admin = fmt.Sprint(line["listen"]), "http://"+fmt.Sprint(line["admin"])
	return s
}

// ended stops nothing: it waits for the end and returns the exit code.
func (s *served) ended() int {
	code := <-s.exit
	s.exit <- code
	return code
}

func dial(t *testing.T, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// health returns what the named service is said to be.
func healthOf(t *testing.T, conn *grpc.ClientConn, name string) string {
	t.Helper()
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
	if err != nil {
		return status.Code(err).String()
	}
	return resp.GetStatus().String()
}

type extStream struct {
	extprocv3.ExternalProcessor_ProcessClient

	t *testing.T
}

func openStream(t *testing.T, conn *grpc.ClientConn) extStream {
	t.Helper()
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return extStream{ExternalProcessor_ProcessClient: stream, t: t}
}

// ask sends one message and returns the reply to it.
func (s extStream) ask(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	s.t.Helper()
	if err := s.Send(m); err != nil {
		s.t.Fatal(err)
	}
	reply, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

func headers(pairs ...string) *extprocv3.HttpHeaders {
	h := &corev3.HeaderMap{}
	for i := 0; i < len(pairs); i += 2 {
		h.Headers = append(h.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &extprocv3.HttpHeaders{Headers: h}
}

func requestHeaders(mode filterv3.ProcessingMode_BodySendMode) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(
			":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json", "x-request-id", "req-1")},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode:  mode,
			ResponseBodyMode: filterv3.ProcessingMode_STREAMED,
		},
	}
}

func requestBody(text string) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: true},
	}}
}

func responseHeaders() *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: headers(":status", "200", "content-type", "text/event-stream"),
	}}
}

func responseBody(text string, end bool) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: end},
	}}
}

const (
	askLlama  = `{"model":"llama","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	oneToken  = `data: {"id":"chatcmpl-1","model":"llama","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n"
	endMark   = "data: [DONE]\n\n"
	onePool   = "pools: [{name: default, endpoints: [127.0.0.1:8001]}]\n"
	atAnyPort = "listen: 127.0.0.1:0\n"
)

// From ready to the end of the last stream: what the exchange leaves is looked
// up, and a stream under way at the signal finishes.
func TestServe_Life(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := startServe(t, "listen: unix:"+socket+"\n"+onePool)
	if s.listen != "unix:"+socket {
		t.Errorf("listens on %s", s.listen)
	}
	conn := dial(t, s.listen, insecure.NewCredentials())
	names := func(want string) {
		t.Helper()
		for name, want := range map[string]string{
			"": want, "readiness": want, wire.ServiceName: want, "liveness": "SERVING", "else": "NotFound",
		} {
			if got := healthOf(t, conn, name); got != want {
				t.Errorf("health of %q: %s, want %s", name, got, want)
			}
		}
	}
	names("SERVING")
	if code, body := ask(t, s.admin+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "readiness"})
	if err != nil {
		t.Fatal(err)
	}
	watched := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if m, err := watch.Recv(); err != nil || m.GetStatus() != want {
			t.Errorf("watch of readiness: %v %v, want %v", m, err, want)
		}
	}
	watched(grpc_health_v1.HealthCheckResponse_SERVING)

	stream := openStream(t, conn)
	stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
	stream.ask(requestBody(askLlama))
	s.stop()
	s.logs.await(t, "drain")
	names("NOT_SERVING")
	watched(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	if code, _ := ask(t, s.admin+"/readyz"); code != 503 {
		t.Errorf("/readyz while draining: %d", code)
	}

	stream.ask(responseHeaders())
	stream.ask(responseBody(oneToken, false))
	r := inferspan(t, "lookup", "req-1", "--admin", s.admin)
	if r.Code != 1 || !strings.Contains(r.Stderr, `no record of "req-1"`) {
		t.Errorf("lookup before the end: %+v", r)
	}
	stream.ask(responseBody(endMark, true))
	second := openStream(t, conn)
	second.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("end of the stream: %v, want OK", err)
	}
	r = inferspan(t, "lookup", "chatcmpl-1", "--admin", s.admin)
	if r.Code != 0 || !strings.Contains(r.Stdout, "req-1") || !strings.Contains(r.Stdout, "127.0.0.1:8001") {
		t.Errorf("lookup: %+v", r)
	}
	if err := second.CloseSend(); err != nil {
		t.Error(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// At the end of drain_timeout, a stream that Envoy can go on without is ended
// with OK; nothing hangs on it.
func TestServe_DrainTimeout(t *testing.T) {
	s := startServe(t, atAnyPort+onePool+"drain_timeout: 0s\n")
	stream := openStream(t, dial(t, s.listen, insecure.NewCredentials()))
	stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
	stream.ask(requestBody(askLlama))
	stream.ask(responseHeaders())
	s.stop()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("end of the stream: %v, want OK", err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestServe_Metrics(t *testing.T) {
	s := startServe(t, atAnyPort+onePool)
	stream := openStream(t, dial(t, s.listen, insecure.NewCredentials()))
	stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
	stream.ask(requestBody(askLlama))
	code, page := ask(t, s.admin+"/metrics")
	for _, want := range []string{"inferspan_build_info", "inferspan_request_active"} {
		if code != 200 || !strings.Contains(page, want) {
			t.Errorf("/metrics: %d, no %s in\n%s", code, want, page)
		}
	}
}

func TestServe_Faults(t *testing.T) {
	logs := make(logLines, 10)
	code := run(t.Context(), []string{"serve", "--config", write(t, "listen: 1\nadmin: 2\n")}, io.Discard, logs)
	if code != 1 || len(logs) != 2 {
		t.Errorf("a wrong configuration: exit code %d, %d lines, want 1 and 2", code, len(logs))
	}

	first := startServe(t, atAnyPort)
	logs = make(logLines, 10)
	file := write(t, "listen: "+first.listen+"\nadmin: 127.0.0.1:0\nlog: {level: error}\n")
	code = run(t.Context(), []string{"serve", "--config", file}, io.Discard, logs)
	want := "listen: " + first.listen + ": bind: address already in use: stop the process that listens there, or choose another address"
	if line := <-logs; code != 1 || line["error"] != want {
		t.Errorf("an address in use: exit code %d, %v, want 1, %s", code, line, want)
	}
	file = write(t, atAnyPort+"admin: "+strings.TrimPrefix(first.admin, "http://"))
	code = run(t.Context(), []string{"serve", "--config", file}, io.Discard, logs)
	if line := logs.await(t, "stop"); code != 1 || !strings.HasPrefix(fmt.Sprint(line["error"]), "admin: 127.0.0.1:") {
		t.Errorf("an admin address in use: exit code %d, %v", code, line)
	}
}

func TestServe_UnknownMethod(t *testing.T) {
	s := startServe(t, atAnyPort)
	conn := dial(t, s.listen, insecure.NewCredentials())
	err := conn.Invoke(t.Context(), "/no.such/Method", &extprocv3.ProcessingRequest{}, &extprocv3.ProcessingResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
}

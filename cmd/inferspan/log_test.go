package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/credentials/insecure"
)

// An exchange that fails leaves one line, which names it as its record and its
// span do; one that does not fail leaves none. Neither says what was asked.
func TestLog_Exchanges(t *testing.T) {
	s := startServe(t, atAnyPort+onePool+"log: {level: debug}\n")
	conn := dial(t, s.listen, insecure.NewCredentials())
	play := func(status string) {
		stream := openStream(t, conn)
		stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
		stream.ask(requestBody(askLlama))
		stream.ask(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{
			ResponseHeaders: headers(":status", status, "content-type", "text/event-stream"),
		}})
		stream.ask(responseBody(oneToken, false))
		stream.ask(responseBody(endMark, true))
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the end of the stream: %v", err)
		}
	}
	play("200")
	play("503")
	s.stop()
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var failures []logLine
	for line := range s.logs {
		if line["msg"] == "exchange failed" {
			failures = append(failures, line)
		}
		if line["msg"] == exited {
			break
		}
	}
	if len(failures) != 1 {
		t.Fatalf("%d lines of failures, want 1: %v", len(failures), failures)
	}
	line := failures[0]
	for key, want := range map[string]any{
		"level": "INFO", "outcome": "http_error", "error_type": "503", "model": "llama", "pool": "default",
		"endpoint": "127.0.0.1:8001", "request_id": "req-1", "trace_flags": "01",
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if id, _ := line["trace_id"].(string); len(id) != 32 || strings.Trim(id, "0") == "" {
		t.Errorf("the trace id is %q", id)
	}
}

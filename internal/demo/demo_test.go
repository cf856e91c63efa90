package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDemo runs all of it until a lookup command was printed, pastes that, and
// leaves as the user would.
func TestDemo(t *testing.T) {
	envoy, err := testkit.EnvoyBinary()
	if err != nil {
		t.Fatal(err)
	}
	inferspan, err := testkit.BuildInferspan(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sink, err := testkit.NewSink()
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, env := range sink.Env() {
		name, value, _ := strings.Cut(env, "=")
		t.Setenv(name, value)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, w := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		args := []string{"--envoy", envoy, "--inferspan", inferspan, "--seconds", "600", "--rate", "20"}
		code <- run(ctx, args, w, &stderr)
		_ = w.Close() // never fails
	}()
	var all strings.Builder
	requests := 0
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			break
		}
		switch {
		case strings.HasPrefix(line, "chatcmpl-"), strings.HasPrefix(line, "cmpl-"):
			if requests++; requests == 20 {
				leave()
			}
			if n := len(strings.Fields(line)); n < 8 {
				t.Errorf("a line of %d fields: %q", n, line)
			}
		case strings.Contains(line, " lookup "):
			paste(t, line)
		}
	}
	if got := <-code; got != 0 {
		t.Fatalf("the demo ended with %d: %s\n%s", got, stderr.String(), all.String())
	}
	out := all.String()
	for _, want := range []string{"stand-in vLLM", "Inferspan ", "Envoy ", "exporting to   http://127.0.0.1:", "RESPONSE ID", "MEDIAN TTFT", "The slowest to its first token:"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.Contains(out, "no record:") || !strings.Contains(out, " 0 without a record\n") {
		t.Error("a request had no record")
	}
	if n := len(sink.Spans(func(s testkit.Span) bool { return s.Kind == trace.Span_SPAN_KIND_CLIENT })); n < requests {
		t.Errorf("%d spans of exchanges were exported of %d", n, requests)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// paste runs a printed lookup command; it finds the response named in it.
func paste(t *testing.T, line string) {
	t.Helper()
	_, command, _ := strings.Cut(line, ":  ")
	args := strings.Fields(command)
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(args[2])) {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}

func TestRunRejectsItsArguments(t *testing.T) {
	for _, args := range [][]string{{"--seconds", "0"}, {"--rate", "0"}, {"--rate", "101"}, {"x"}, {"--nope"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("run(%q): got %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	missing := filepath.Join(t.TempDir(), "inferspan")
	code := run(t.Context(), []string{"--inferspan", missing}, &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), missing) {
		t.Errorf("got %d, %q", code, &stderr)
	}
}

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// asProgram, set in the environment, makes the test binary the program itself,
// for what only a process of its own can show.
const asProgram = "INFERSPAN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a run of the program leaves.
type result struct {
	Code           int
	Stdout, Stderr string
}

func inferspan(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "inferspan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask returns what a GET of url is answered with.
func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestUsage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if diff := cmp.Diff(result{Code: 2, Stderr: want}, inferspan(t, args...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
	f(usage)
	f("inferspan: there is no command \"serv\\x1b\"\n"+usage, "serv\x1b")
	f("usage: inferspan serve --config FILE\n", "serve")
	f("usage: inferspan serve --config FILE\n", "serve", "--help")
	f("usage: inferspan serve --config FILE\n", "serve", "--config", "f", "g")
	f("flag provided but not defined: -confg\nusage: inferspan serve --config FILE\n", "serve", "--confg", "f")
	f("usage: inferspan check FILE\n", "check")
	f("usage: inferspan check FILE\n", "check", "a", "b")
	f("usage: inferspan lookup ID [--admin URL] [--jaeger URL [--service NAME]] [--json]\n", "lookup", "--json")
	f("inferspan lookup: the ID is empty, want a request id, trace id or response id\n", "lookup", "")
	f("inferspan lookup: --admin is \"ftp://x\", want a URL such as http://127.0.0.1:9464\n", "lookup", "x", "--admin", "ftp://x")
	f("usage: inferspan version\n", "version", "x")
}

func TestHelp(t *testing.T) {
	for _, word := range []string{"--help", "-h", "help"} {
		if diff := cmp.Diff(result{Stdout: usage}, inferspan(t, word)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", word, diff)
		}
	}
}

func TestVersion(t *testing.T) {
	r := inferspan(t, "version")
	lines := strings.Split(r.Stdout, "\n")
	if r.Code != 0 || r.Stderr != "" || len(lines) != 4 ||
		!strings.HasPrefix(lines[0], "inferspan ") || !strings.HasPrefix(lines[1], "commit ") || !strings.HasPrefix(lines[2], "go1.") {
		t.Errorf("version: %+v", r)
	}
}

func TestCheck(t *testing.T) {
	t.Setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "40")
	f := func(text, want string, code int) {
		t.Helper()
		file := write(t, text)
		got := inferspan(t, "check", file)
		got.Stderr = strings.ReplaceAll(got.Stderr, file, "FILE")
		if diff := cmp.Diff(result{Code: code, Stderr: want}, got); diff != "" {
			t.Errorf("check of\n%s\n(-want +got):\n%s", text, diff)
		}
	}
	f("trace: {chunk_events: {max: 24}}", "", 0)
	f("trace: {chunk_events: {max: 25}}",
		"FILE: warning: trace.chunk_events.max: is 25, but 24 take effect: a span has 40 events at most (OTEL_SPAN_EVENT_COUNT_LIMIT) and 16 are kept free for milestones\n", 0)
	f("admin: 9464\nlog: {level: loud}\n",
		"FILE:1: admin: is \"9464\", which is no address; allowed: host:port, such as 127.0.0.1:9002, [::1]:9002 or :9002\n"+
			"FILE:2: log.level: is \"loud\"; allowed: debug, info, warn, error\n", 1)

	r := inferspan(t, "check", "/no/such/file")
	if want := "inferspan: read the configuration: open /no/such/file: no such file or directory\n"; r.Code != 1 || r.Stderr != want {
		t.Errorf("check of a missing file: %+v, want %q", r, want)
	}
}

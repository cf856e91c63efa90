package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const streams = "../../internal/testkit/testdata/streams/"

func TestReplayJSON(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	code := replay([]string{"--json", streams + "chat-usage.jsonl", "--cut", "bytes", streams + "error-model-404.jsonl"}, &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
	want := []struct {
		Name         string `json:"name"`
		RequestModel string `json:"request_model"`
		Outcome      string `json:"outcome"`
		Status       int    `json:"status"`
		EndUS        int64  `json:"end_us"`
	}{
		{"chat-usage", "tiny", "ok", 200, 180900},
		{"error-model-404", "nope", "http_error", 404, 3059},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %s", len(lines), &stdout)
	}
	for i, line := range lines {
		got := want[i]
		if err := json.Unmarshal([]byte(line), &got); err != nil || got != want[i] {
			t.Errorf("got %+v, %v, want %+v", got, err, want[i])
		}
	}
}

func TestReplayTable(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	code := replay([]string{streams + "chat-usage.jsonl", streams + "chat-no-usage.jsonl", streams + "health-get.jsonl"}, &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, &stderr)
	}
	var got [][]string
	for line := range strings.Lines(stdout.String()) {
		got = append(got, strings.Fields(line))
	}
	if len(got) != 4 || strings.Join(got[0], " ") != "NAME OUTCOME TTFT TPOT TOKENS SOURCE EVENTS" {
		t.Fatalf("got %s", &stdout)
	}
	if row := strings.Join(got[1], " "); !strings.HasPrefix(row, "chat-usage ok 32.855 ms ") || !strings.HasSuffix(row, " 24 usage 26") {
		t.Errorf("got %s", row)
	}
	if row := strings.Join(got[2], " "); !strings.HasPrefix(row, "chat-no-usage ok ") || !strings.Contains(row, " ~") || !strings.Contains(row, " estimate ") {
		t.Errorf("got %s", row)
	}
	if row := strings.Join(got[3], " "); row != "health-get ok - - - - 0" {
		t.Errorf("got %s", row)
	}
}

// TestReplayPrintsNoControls: a name in a recording can be anybody's.
func TestReplayPrintsNoControls(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hostile.jsonl")
	text := `{"format":"inferspan-exchange/1","name":"\u001b[2J\tm\u00f6\n","request":{"method":"GET","path":"/health"}}` + "\n" +
		`{"at_us":7,"end":"reset"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	code := replay([]string{file}, &stdout, &stderr)
	_, row, _ := strings.Cut(stdout.String(), "\n")
	if got, want := strings.Join(strings.Fields(row), " "), `\x1b[2J\tm\u00f6\n upstream_reset - - - - 0`; code != 0 || got != want {
		t.Errorf("exit %d, %s\n got %q\nwant %q", code, &stderr, got, want)
	}
}

// How a waterfall looks is tested with the journal's.
func TestReplayWaterfall(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	code := replay([]string{"--waterfall", streams + "stall-chat.jsonl", streams + "health-get.jsonl"}, &stdout, &stderr)
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, &stderr)
	}
	first, second, found := strings.Cut(stdout.String(), "\n\nrecording    health-get\n")
	if !found || !strings.HasPrefix(first, "recording    stall-chat\n") || !strings.Contains(first, "\nstalls       2616.8 ms until 3174.2 ms\n") {
		t.Errorf("got %s", &stdout)
	}
	if strings.Contains(second, "timeline") {
		t.Errorf("a timeline without tokens: %s", second)
	}
}

func TestReplayGoesOnAfterAFault(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	var stdout, stderr strings.Builder
	code := replay([]string{"--json", broken, missing, streams + "chat-usage.jsonl"}, &stdout, &stderr)
	if code != 1 || !strings.HasPrefix(stdout.String(), `{"name":"chat-usage",`) {
		t.Errorf("exit %d, %s", code, &stdout)
	}
	want := "inferspan replay: " + broken + `:1: no "format": this is no recording, want "inferspan-exchange/1"` + "\n" +
		"inferspan replay: open a recording: open " + missing + ": no such file or directory\n"
	if stderr.String() != want {
		t.Errorf("\n got %s\nwant %s", &stderr, want)
	}
}

func TestReplayUsage(t *testing.T) {
	t.Parallel()
	const usage = "usage: inferspan replay [--json | --waterfall] [--cut frames|bytes|SIZE|random:SEED] FILE...\n"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no file": {[]string{"--json"}, "inferspan replay: no file named\n" + usage},
		"both":    {[]string{"--waterfall", "x", "--json"}, "inferspan replay: --json and --waterfall exclude each other\n" + usage},
		"unknown": {[]string{"--table", "x"}, "flag provided but not defined: -table\n" + usage},
		"cut":     {[]string{"--cut", "lines", "x"}, `inferspan replay: cut "lines": must be frames, bytes, a number of bytes from 1 up, or random:SEED` + "\n"},
		"after":   {[]string{"x", "--cut"}, "flag needs an argument: -cut\n" + usage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			if code := replay(tt.args, &stdout, &stderr); code != 2 || stderr.String() != tt.want || stdout.Len() > 0 {
				t.Errorf("exit %d, %s%s", code, &stdout, &stderr)
			}
		})
	}
}

// fullDisk fails every write.
type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestReplayTellsThatItCouldNotWrite(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{streams + "chat-usage.jsonl"}, {"--json", streams + "chat-usage.jsonl"}, {"--waterfall", streams + "chat-usage.jsonl"},
	} {
		var stderr strings.Builder
		if code := replay(args, fullDisk{}, &stderr); code != 1 || stderr.String() != "inferspan replay: write the records: disk full\n" {
			t.Errorf("%v: exit %d, %s", args, code, &stderr)
		}
	}
}

package processor

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// Every line of log of an exchange names it.
func TestLinesNameTheExchange(t *testing.T) {
	var b bytes.Buffer
	s, _ := newTestService()
	s.cfg.Logger = slog.New(slog.NewJSONHandler(&b, nil))
	x := newExchange(s, &replies{}, caller{})
	deliver(t, x, epoch, message{phase: "request_headers", end: true, headers: chatHead()})
	x.guard("test", func() { panic("injected") })
	if err := (&loop{s: s, x: x}).closed(errors.New("injected"), epoch); err != nil {
		t.Errorf("the end of the stream: %v", err)
	}
	lines := 0
	for line := range strings.Lines(b.String()) {
		lines++
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{
			"request_id": "req-1", "trace_id": "01000000000000000000000000000002",
			"span_id": "0300000000000004", "trace_flags": "01",
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %v, want %s", got["msg"], key, got[key], want)
			}
		}
	}
	if lines != 2 {
		t.Errorf("%d lines, want 2:\n%s", lines, b.String())
	}
}

func TestLoggedID(t *testing.T) {
	if got := loggedID("a\x1b[2J\xff" + strings.Repeat("b", 1000)); len(got) > maxLoggedID+4 || !strings.HasPrefix(got, "a\uFFFD[2J\uFFFDb") {
		t.Errorf("the id is %q", got)
	}
}

//go:build integration

package integration

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

const (
	wishes = `"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	asking = "," + wishes + "}"
)

// TestUsageOnDemand asks real Envoys' model servers for usage that no client
// sees.
func TestUsageOnDemand(t *testing.T) {
	for _, form := range []string{inline, duplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(e.config("default") + "usage: {ask: auto}\n")
			e.startEnvoy()
			t.Run("hidden", e.usageHidden)
			t.Run("cut", e.usageCut)
			t.Run("aborted", e.usageOfAnAbort)
			t.Run("broken off", e.usageOfABreak)
		})
	}
}

func recordedAs(t *testing.T, name string) (testkit.Call, testkit.Script) {
	t.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	call, s, err := testkit.ReadRecording(filepath.Join(root, "internal", "testkit", "testdata", "streams", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return call, s.Scaled(0)
}

var differing = regexp.MustCompile(`"(id|created)":("[^"]*"|\d+)`)

// alike leaves out what differs from one exchange to the next.
func alike(body []byte) string { return string(differing.ReplaceAll(body, []byte(`"$1":0`))) }

// usageHidden has a server answer one who asks for nothing as it does one who
// asks: the client gets what was recorded of one who did not ask.
func (e *edge) usageHidden(t *testing.T) {
	for with, without := range map[string]string{
		"chat-continuous-usage": "chat-no-usage",
		"comp-continuous-usage": "comp-no-usage",
	} {
		_, s := recordedAs(t, with)
		call, plain := recordedAs(t, without)
		call.Header = append(call.Header, testkit.Header{Name: "accept-encoding", Value: "gzip"})
		x := e.mustPlay(t, s, call)
		if diff := cmp.Diff(alike(plain.Body()), alike(x.Body)); diff != "" || x.Broken {
			t.Errorf("%s: broken %t, the client's bytes (-not asked +got):\n%s", with, x.Broken, diff)
		}
		up := e.upstream(t, x.id)
		if want := strings.TrimSuffix(string(call.Body), "}") + asking; string(up.Body) != want {
			t.Errorf("%s: the model server got %s, want %s", with, up.Body, want)
		}
		if got := up.Header.Get("accept-encoding"); got != "identity" {
			t.Errorf("%s: the model server got accept-encoding %q", with, got)
		}
		record := e.record(t, x.id)
		if record["output_source"] != "usage" || record["output_tokens"] != 24.0 || record["bytes"] != float64(len(s.Body())) {
			t.Errorf("%s: %v tokens from %v, %v bytes", with, record["output_tokens"], record["output_source"], record["bytes"])
		}
	}
}

// usageCut has the stream come in pieces of a few bytes each, and end without
// the end of its last event.
func (e *edge) usageCut(t *testing.T) {
	_, s := recordedAs(t, "chat-continuous-usage")
	call, plain := recordedAs(t, "chat-no-usage")
	const tail = "data: {\"choices\":[],\"usage\""
	all := append(s.Body(), tail...)
	s.Pieces = nil
	for len(all) > 0 {
		n := min(97, len(all))
		s.Pieces = append(s.Pieces, testkit.Piece{Data: all[:n]})
		all = all[n:]
	}
	x := e.mustPlay(t, s, call)
	if diff := cmp.Diff(alike(append(plain.Body(), tail...)), alike(x.Body)); diff != "" || x.Broken {
		t.Errorf("broken %t, the client's bytes (-not asked +got):\n%s", x.Broken, diff)
	}
	e.record(t, x.id)
}

var usageOfChunk = regexp.MustCompile(`,"usage":\{[^{}]*\{[^{}]*\}\}`)

// usageOfAnAbort has the client hang up: the record is exact to the token that
// was under way.
func (e *edge) usageOfAnAbort(t *testing.T) {
	call, s := recordedAs(t, "chat-abort-continuous")
	want := usageOfChunk.ReplaceAll(s.Body(), nil)
	call.Body = bytes.Replace(call.Body, []byte(wishes+","), nil, 1)
	call.HangUpAfter = len(want)
	x := e.mustPlay(t, s, call)
	if diff := cmp.Diff(string(want), string(x.Body)); diff != "" || !x.HungUp {
		t.Errorf("hung up %t, the client's bytes (-not asked +got):\n%s", x.HungUp, diff)
	}
	record := e.record(t, x.id)
	if record["output_source"] != "continuous_usage" || record["output_tokens"] != 41.0 || record["outcome"] != "client_cancelled" {
		t.Errorf("%v tokens from %v, outcome %v", record["output_tokens"], record["output_source"], record["outcome"])
	}
}

// usageOfABreak has the server break off: the client gets every event that was
// whole.
func (e *edge) usageOfABreak(t *testing.T) {
	call, s := recordedAs(t, "chat-abort-continuous")
	want := usageOfChunk.ReplaceAll(s.Body(), nil)
	call.Body = bytes.Replace(call.Body, []byte(wishes+","), nil, 1)
	arrived := make(chan struct{})
	s.End, s.EndAfter = testkit.EndReset, arrived
	call.OnPiece = func(body []byte) {
		if len(body) == len(want) {
			close(arrived)
		}
	}
	x := e.mustPlay(t, s, call)
	if diff := cmp.Diff(string(want), string(x.Body)); diff != "" || !x.Broken {
		t.Errorf("broken %t, the client's bytes (-not asked +got):\n%s", x.Broken, diff)
	}
	if record := e.record(t, x.id); record["output_source"] != "continuous_usage" || record["output_tokens"] != 41.0 {
		t.Errorf("%v tokens from %v", record["output_tokens"], record["output_source"])
	}
}

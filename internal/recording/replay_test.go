package recording_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// What the core makes of a recording is tested with the core; here, that it
// gets everything.
func TestReplay(t *testing.T) {
	t.Parallel()
	rec, err := read(first, head, `{"at_us":20,"data":"data: [DONE]\n\n"}`, end)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []string{"frames", "bytes", "3", "random:7"} {
		c, err := recording.ParseCut(cut)
		if err != nil {
			t.Fatal(err)
		}
		r := recording.Replay(rec, c)
		switch {
		case r.Name != "x" || r.RequestID != "r1" || r.Method != http.MethodPost || r.Path != "/v1/completions":
			t.Errorf("%s: name %q, id %q, %s %s", cut, r.Name, r.RequestID, r.Method, r.Path)
		case r.RequestModel != meter.Some("m"):
			t.Errorf("%s: request model %v", cut, r.RequestModel)
		case !r.Start.Equal(time.Date(2026, 11, 30, 10, 35, 3, 0, time.UTC)):
			t.Errorf("%s: start %s", cut, r.Start)
		case r.Status != 200 || !r.Stream || r.Headers != meter.Some(10*time.Microsecond):
			t.Errorf("%s: status %d, stream %v, headers at %v", cut, r.Status, r.Stream, r.Headers)
		case r.Events != 1 || r.FirstByte != meter.Some(20*time.Microsecond) || r.End != 30*time.Microsecond || r.Bytes != 14:
			t.Errorf("%s: %d events, first byte %v, end %v, %d bytes", cut, r.Events, r.FirstByte, r.End, r.Bytes)
		}
	}
}

func TestReplayEnds(t *testing.T) {
	t.Parallel()
	for end, want := range map[recording.End]meter.Outcome{
		recording.EndEOF:          meter.Truncated,
		recording.EndClientClosed: meter.ClientCancelled,
		recording.EndTruncated:    meter.UpstreamReset,
		recording.EndReset:        meter.UpstreamReset,
		recording.EndTimeout:      meter.Timeout,
		recording.EndAborted:      meter.Aborted,
		recording.EndLost:         meter.Lost,
	} {
		rec, err := read(first, head, `{"at_us":20,"data":"data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n"}`, `{"at_us":30,"end":"`+string(end)+`"}`)
		if err != nil {
			t.Fatal(err)
		}
		if r := recording.Replay(rec, recording.Cut{}); r.Outcome != want {
			t.Errorf("%s: outcome %s, want %s", end, r.Outcome, want)
		}
	}
}

func TestReplayWithoutAResponse(t *testing.T) {
	t.Parallel()
	rec, err := read(first, `{"at_us":30,"end":"client_closed"}`)
	if err != nil {
		t.Fatal(err)
	}
	r := recording.Replay(rec, recording.Cut{})
	if r.Status != 0 || r.Outcome != meter.ClientCancelled || r.End != 30*time.Microsecond || !r.Start.IsZero() {
		t.Errorf("status %d, outcome %s, end %v, start %v", r.Status, r.Outcome, r.End, r.Start)
	}
}

package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/processor/meter"
)

func failureLines(level slog.Level, records ...*meter.Record) string {
	var b bytes.Buffer
	f := NewFailures(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	for _, r := range records {
		f.Add(r)
	}
	return b.String()
}

func TestFailures(t *testing.T) {
	failed := richRecord()
	failed.Outcome = meter.UpstreamReset
	failed.RequestModel = meter.Some("llama\n" + strings.Repeat("x", 1000))
	var others []*meter.Record
	for _, o := range []meter.Outcome{meter.OK, meter.ClientCancelled, meter.Rejected, meter.Lost} {
		r := richRecord()
		r.Outcome = o
		others = append(others, r)
	}
	const want = `level=INFO msg="exchange failed" outcome=upstream_reset error_type=upstream_reset model="llama` + "\uFFFD"
	got := failureLines(slog.LevelInfo, append(others, failed)...)
	if !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 || len(got) > 600 {
		t.Errorf("the lines are\n%s\nwant one that begins with\n%s", got, want)
	}
	_, got, _ = strings.Cut(got, " pool=")
	if diff := cmp.Diff("default endpoint=10.0.0.1:8000 duration_s=0.21 request_id=req-1 trace_id=01020000000000000000000000000000 span_id=0304000000000000 trace_flags=01\n", got); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	rejected := richRecord()
	rejected.Outcome, rejected.Route.Reason = meter.Rejected, "no_endpoint"
	for status, want := range map[int]string{503: `level=INFO msg="exchange failed" outcome=rejected error_type=no_endpoint `, 429: `level=INFO msg="exchange failed" outcome=rejected error_type=no_endpoint `, 404: "", 400: ""} {
		rejected.Status = status
		if got := failureLines(slog.LevelInfo, rejected); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("rejected with %d, the line is %q, want %q", status, got, want)
		}
	}
	if got := failureLines(slog.LevelWarn, failed); got != "" {
		t.Errorf("at a level above, the line is %s", got)
	}
}

package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A panic of the worker costs the telemetry of its exchange.
func TestWorkerPanics(t *testing.T) {
	var log bytes.Buffer
	c := quiet()
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	x := &keepingExporter{}
	tel := open(t, c, x)
	broken := newEntry(richRecord(), tel.rules.Load())
	broken.rules = &rules{} // without what judges
	if ok, _ := tel.intake.put(broken); !ok {
		t.Fatal("there is no room")
	}
	tel.End(richRecord())
	shut(t, tel)
	if len(x.spans) != 2 {
		t.Errorf("%d spans went out, want the two of the exchange behind", len(x.spans))
	}
	if s := log.String(); !strings.Contains(s, "panic caught") || !strings.Contains(s, "request_id=req-1") || !strings.Contains(s, "keep.go") {
		t.Errorf("the log is %q", s)
	}
}

// panickingExporter panics at its first batch.
type panickingExporter struct {
	keepingExporter
	batches int
}

func (p *panickingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if p.batches++; p.batches == 1 {
		panic("injected")
	}
	return p.keepingExporter.ExportSpans(ctx, spans)
}

// A panic in an export costs its batch, which is counted.
func TestExportPanics(t *testing.T) {
	x, c := &panickingExporter{}, &tally{}
	out := exportTo(x, 1<<20, 1, c)
	for range 3 {
		out.offer(plainEntry(t))
	}
	if err := out.shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if len(x.spans) != 2 || c.out != 2 || c.reasons[dropFailed] != 1 || c.lost != 1 {
		t.Errorf("%d spans went out, sent %d, dropped %v", len(x.spans), c.out, c.reasons)
	}
}

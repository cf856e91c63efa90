package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

var update = flag.Bool("update", false, "write the golden file; only commit a change that you understand")

func TestReport(t *testing.T) {
	ms := func(n int) meter.Opt[time.Duration] { return meter.Some(time.Duration(n) * time.Millisecond) }
	full := &meter.Record{
		RequestID: "3f0c", Trace: meter.Trace{TraceID: [16]byte{0xab, 15: 0xcd}},
		Start:        time.Date(2026, 11, 30, 21, 25, 29, 0, time.UTC),
		RequestModel: meter.Some("assistant"), Model: meter.Some("tiny"), ResponseID: meter.Some("chatcmpl-86ed98b816dbc5ad"),
		Status: 200, Outcome: meter.OK, Stream: true, Choices: 1,
		PromptTokens: meter.Some(int64(20)), OutputTokens: meter.Some(int64(41)), OutputSource: meter.SourceUsage,
		FirstByte: ms(14), FirstEvent: ms(14), FirstToken: ms(14), FirstTokenKind: meter.KindContent, LastToken: ms(294), End: 295 * time.Millisecond,
		Route: meter.Route{Pool: "default", Endpoint: "127.0.0.1:8001", Policy: "least-load"},
	}
	left := *full
	left.Outcome, left.OutputSource, left.PromptTokens, left.FirstToken = meter.Aborted, meter.SourceEstimate, meter.Opt[int64]{}, ms(30)
	left.Route.Endpoint = "127.0.0.1:8002"
	silent := &meter.Record{RequestID: "77aa", Outcome: meter.Aborted, RequestModel: meter.Some("tiny")}

	var out bytes.Buffer
	r := newReport(&out, "bin/inferspan", "http://127.0.0.1:9464")
	for range 2 {
		for _, got := range []result{{record: silent}, {record: full}, {record: &left}, {err: errors.New("broken")}} {
			if err := r.add(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.summary(); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/report.txt"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", out.Bytes(), want)
	}
}

func TestReportTellsThatNobodyReads(t *testing.T) {
	r := newReport(brokenPipe{}, "bin/inferspan", "http://127.0.0.1:9464")
	if err := r.add(result{record: &meter.Record{}}); !errors.Is(err, errBroken) {
		t.Errorf("add: got %v, want %v", err, errBroken)
	}
	if err := r.summary(); !errors.Is(err, errBroken) {
		t.Errorf("summary: got %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

package processor

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// A panic in deciding, measuring or telling is caught and counted, and the
// exchange passes with its bytes, in every mode.
func TestPanicsEndAtTheirStream(t *testing.T) {
	request, response := []string{`{"model":"m","stream":true}`}, []string{token, finished, "data: [DONE]\n\n"}
	for name, c := range map[string]struct {
		inject func(b *bench)
		routed bool // the request still gets an endpoint
		record bool // telemetry still gets a record
		want   meter.Outcome
	}{
		"in the decision": {
			inject: func(b *bench) { b.router.decideBy = func(route.Request) route.Decision { panic("injected") } },
			record: true, want: meter.OK,
		},
		"in making ids": {
			inject: func(b *bench) { b.telemetry.panicIn = "Begin" }, routed: true, record: true, want: meter.OK,
		},
		"in telling a milestone": {
			inject: func(b *bench) { b.telemetry.panicIn = "First" }, routed: true, record: true, want: meter.OK,
		},
		"in taking the record": {
			inject: func(b *bench) { b.telemetry.panicIn = "End" }, routed: true,
		},
	} {
		for _, mode := range modes {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				var log bytes.Buffer
				b := newBench(t, func(cfg *Config) { cfg.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
				c.inject(b)
				answer := mode
				if mode == none {
					answer = streamed
				}
				e := b.inline(mode, answer)
				got := play(t, e, mode, answer, shape{request: request, response: response})
				e.hangUp()
				b.drained()
				if got.upstream != request[0] || got.downstream != strings.Join(response, "") {
					t.Errorf("%q and %q passed", got.upstream, got.downstream)
				}
				if (got.set[destinationHeader] != "") != c.routed {
					t.Errorf("it goes to %q", got.set[destinationHeader])
				}
				if b.telemetry.count(countPanic) == 0 || !strings.Contains(log.String(), "panic_test.go") && !strings.Contains(log.String(), "fakes_test.go") {
					t.Errorf("%d panics were counted, the log is %q", b.telemetry.count(countPanic), cut(log.String()))
				}
				rs := b.telemetry.recorded()
				if len(rs) != btoi(c.record) {
					t.Fatalf("got %d records", len(rs))
				}
				if c.record && rs[0].Outcome != c.want {
					t.Errorf("the outcome is %s, want %s", rs[0].Outcome, c.want)
				}
				if len(b.journal.records) != 1 {
					t.Errorf("the journal has %d records", len(b.journal.records))
				}
			})
		}
	}
}

// Where the measuring itself breaks, the record says that our view ended.
func TestBrokenMeterMakesALostRecord(t *testing.T) {
	s, tel := newTestService()
	out := &replies{}
	x := newExchange(s, out, caller{})
	deliver(t, x, epoch, message{phase: "request_headers", end: true, headers: chatHead()})
	deliver(t, x, epoch, message{phase: "response_headers", headers: streamHead})
	x.measure(func(*meter.Meter) { panic("injected") })
	deliver(t, x, epoch, message{phase: "response_body", body: token})
	deliver(t, x, epoch, message{phase: "response_body", body: finished, end: true})
	if len(out.sent) != 4 {
		t.Errorf("got %d replies, want 4", len(out.sent))
	}
	rs := tel.recorded()
	if len(rs) != 1 || rs[0].Outcome != meter.Lost || rs[0].Status != 200 || !rs[0].Stream || rs[0].RequestID != "req-1" {
		t.Errorf("the records are %+v", rs)
	}
	if tel.count(countPanic) != 1 {
		t.Errorf("got %d panics", tel.count(countPanic))
	}
}

// A request that can't be scanned passes without our routing.
func TestBrokenScannerPassesTheRequest(t *testing.T) {
	for _, mode := range []string{"buffered", "duplex"} {
		t.Run(mode, func(t *testing.T) {
			s, _ := newTestService()
			s.cfg.AssumeRequest = 2 // ModeBuffered
			if mode == "duplex" {
				s.cfg.AssumeRequest = 5
			}
			out := &replies{}
			x := newExchange(s, out, caller{})
			deliver(t, x, epoch, message{phase: "request_headers", headers: chatHead()})
			x.stopScan()
			deliver(t, x, epoch, message{phase: "request_body", body: `{"model":"alias"}`, end: true})
			last := out.sent[len(out.sent)-1]
			if len(out.sent) != 2 || last.HasBody || last.Endpoint != "" || last.Immediate != nil {
				t.Errorf("the replies are %+v", out.sent)
			}
			if mode == "duplex" && (string(last.Body) != `{"model":"alias"}` || !last.EndOfStream) {
				t.Errorf("the echo is %q", last.Body)
			}
			x.closed(epoch)
		})
	}
}

package processor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	data "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// logged sends one entry as Envoy does, and returns when it was taken.
func (b *bench) logged(e *data.HTTPAccessLogEntry) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stream, err := accesslog.NewAccessLogServiceClient(b.conn).StreamAccessLogs(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := stream.Send(logMessage(e)); err != nil {
		b.t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		b.t.Fatal(err)
	}
}

func logMessage(e *data.HTTPAccessLogEntry) *accesslog.StreamAccessLogsMessage {
	return &accesslog.StreamAccessLogsMessage{LogEntries: &accesslog.StreamAccessLogsMessage_HttpLogs{
		HttpLogs: &accesslog.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: []*data.HTTPAccessLogEntry{e}},
	}}
}

// begunAt is when the requests of these tests began, by Envoy's clock.
var begunAt = epoch.Add(-4 * time.Millisecond)

// entryOf is the entry of a request that began then and took a second.
func entryOf(spanID string, sent int, f *data.ResponseFlags) *data.HTTPAccessLogEntry {
	e := &data.HTTPAccessLogEntry{
		CommonProperties: &data.AccessLogCommon{
			StartTime: timestamppb.New(begunAt.Add(77 * time.Nanosecond)), Duration: durationpb.New(time.Second + 5),
			TimeToLastUpstreamRxByte:   durationpb.New(900 * time.Millisecond),
			TimeToLastDownstreamTxByte: durationpb.New(950 * time.Millisecond),
			ResponseFlags:              f, UpstreamRequestAttemptCount: 3,
			AccessLogType: data.AccessLogType_DownstreamEnd,
		},
		Request:  &data.HTTPRequestProperties{RequestId: "req-1"},
		Response: &data.HTTPResponseProperties{ResponseBodyBytes: uint64(sent), ResponseCodeDetails: "via_upstream"},
	}
	if spanID != "" {
		ours, _ := structpb.NewStruct(map[string]any{wire.SpanKey: spanID})
		e.CommonProperties.Metadata = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"inferspan": ours}}
	}
	return e
}

// timed says when the request began.
func timed(m *extproc.ProcessingRequest) *extproc.ProcessingRequest {
	return attributes(m, map[string]any{"request.time": begunAt.Format("2006-01-02T15:04:05.000000+00:00")})
}

var (
	clientHungUp = &data.ResponseFlags{DownstreamConnectionTermination: true}
	serverReset  = &data.ResponseFlags{UpstreamRemoteReset: true}
	envoyTimeout = &data.ResponseFlags{StreamIdleTimeout: true}
)

// The access log tells how an exchange ended that broke off, by the span id that
// Envoy has from us.
func TestAccessLogSettles(t *testing.T) {
	for _, c := range []struct {
		name   string
		flags  *data.ResponseFlags
		unseen int // bytes that went past us
		frames []string
		want   meter.Outcome
	}{
		{"client", clientHungUp, 0, []string{token}, meter.ClientCancelled},
		{"client, before any byte", clientHungUp, 0, nil, meter.ClientCancelled},
		{"client, after the finish", clientHungUp, 0, []string{token, finished}, meter.ClientCancelledAfterFinish},
		{"client, after the end mark", clientHungUp, 0, []string{token, finished, "data: [DONE]\n\n"}, meter.OK},
		{"server", serverReset, 0, []string{token}, meter.UpstreamReset},
		{"timeout", envoyTimeout, 0, []string{token}, meter.Timeout},
		{"our view ended", nil, 1, []string{token}, meter.Lost},
		{"all came but the end", nil, 0, []string{token, finished}, meter.OK},
		{"nothing that helps", &data.ResponseFlags{OverloadManager: true}, 0, []string{token}, meter.Aborted},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
			e := b.inline(buffered, streamed)
			e.send(timed(requestHeaders(false, chatHead()...)))
			e.recv()
			e.send(requestBody(`{"model":"m","stream":true,"messages":[]}`, true))
			span := e.recv().GetDynamicMetadata().GetFields()["inferspan"].GetStructValue().GetFields()[wire.SpanKey].GetStringValue()
			if len(span) != 16 {
				t.Fatalf("the span id in the metadata is %q", span)
			}
			answered(e, c.frames...)
			sent := c.unseen
			for _, f := range c.frames {
				sent += len(f)
			}
			e.closeSend()
			b.logged(entryOf(span, sent, c.flags))
			r := b.one()
			if r.Outcome != c.want {
				t.Errorf("outcome %s, want %s", r.Outcome, c.want)
			}
			if r.End != time.Second || r.Route.Attempts != 3 || r.Sent != meter.Some(int64(sent)) ||
				r.ClientDrain != meter.Some(50*time.Millisecond) {
				t.Errorf("end %v, attempts %d, sent %v, drain %v", r.End, r.Route.Attempts, r.Sent, r.ClientDrain)
			}
			if n := b.telemetry.count("unmatched: no_exchange"); n != 0 {
				t.Errorf("%d entries unmatched", n)
			}
		})
	}
}

// Before the ids are known the request id and its start find the exchange.
func TestAccessLogBeforeTheDecision(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
	e := b.inline(buffered, streamed)
	e.send(timed(requestHeaders(false, chatHead()...)))
	e.recv()
	e.closeSend()
	b.logged(entryOf("", 0, clientHungUp))
	if r := b.one(); r.Outcome != meter.ClientCancelled || r.NoFirstToken != "" {
		t.Errorf("outcome %s", r.Outcome)
	}
}

// In observe mode Envoy holds the stream open: an entry ends it at once, but
// not before all frames came.
func TestAccessLogEndsObserved(t *testing.T) {
	for _, early := range []bool{false, true} {
		b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
		e := b.observed()
		e.send(timed(requestHeaders(true, chatHead()...)))
		e.arrived()
		e.send(responseHeaders(false, streamHead...))
		if early {
			b.logged(entryOf("", len(token), clientHungUp))
		}
		e.send(responseBody(token, false))
		if !early {
			b.logged(entryOf("", len(token), clientHungUp))
		}
		e.ended()
		r := b.one()
		if r.Outcome != meter.ClientCancelled || r.End != time.Second || r.Bytes != int64(len(token)) {
			t.Errorf("early %t: outcome %s, end %v, %d bytes", early, r.Outcome, r.End, r.Bytes)
		}
		if n := b.telemetry.count(countDrained) + b.telemetry.count(countLost); n != 0 {
			t.Errorf("early %t: %d faults were counted", early, n)
		}
	}
}

// An entry without a fault ends no stream: its end of stream is on the way.
func TestAccessLogOfACleanEnd(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
	e := b.observed()
	e.send(timed(requestHeaders(true, chatHead()...)))
	e.arrived()
	e.send(responseHeaders(false, streamHead...))
	e.send(responseBody(token+finished, false))
	b.logged(entryOf("", len(token+finished), nil))
	e.send(responseBody("", true))
	e.ended()
	if r := b.one(); r.Outcome != meter.OK || r.End != time.Second || !r.Sent.OK {
		t.Errorf("outcome %s, end %v, sent %v", r.Outcome, r.End, r.Sent)
	}
}

// Two requests at one time with one request id are told apart by their start.
func TestAccessLogOfOneRequestID(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
	var es [2]*envoy
	for i := range es {
		es[i] = b.observed()
		m := attributes(requestHeaders(true, chatHead()...), map[string]any{
			"request.time": begunAt.Add(time.Duration(i) * time.Microsecond).Format("2006-01-02T15:04:05.000000+00:00"),
		})
		es[i].send(m)
		es[i].arrived()
		es[i].send(responseHeaders(false, streamHead...))
		es[i].send(responseBody(token, false))
	}
	first, second := entryOf("", len(token), clientHungUp), entryOf("", len(token), serverReset)
	second.CommonProperties.StartTime = timestamppb.New(begunAt.Add(time.Microsecond + 99))
	b.logged(second)
	es[1].ended()
	b.logged(first)
	es[0].ended()
	b.drained()
	got := map[time.Time]meter.Outcome{}
	for _, r := range b.telemetry.recorded() {
		got[r.Start.UTC()] = r.Outcome
	}
	want := map[time.Time]meter.Outcome{begunAt: meter.ClientCancelled, begunAt.Add(time.Microsecond): meter.UpstreamReset}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes by start (-want +got):\n%s", diff)
	}
}

// Without an entry the record comes after 2 s, or when the service stops.
func TestWaitingForTheAccessLog(t *testing.T) {
	for name, stop := range map[string]bool{"2 s": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, tel := newScriptedService()
				p := serve(s)
				p.send(&extproc.ProcessingRequest{ObservabilityMode: true, Request: requestHeaders(true, chatHead()...).Request})
				m := timed(config(requestHeaders(true, chatHead()...), buffered, streamed))
				q := serve(s)
				q.send(m)
				synctest.Wait()
				close(p.in)
				close(q.in)
				for _, over := range []*pipe{p, q} {
					if err := <-over.result; err != nil {
						t.Errorf("a stream ended with %v", err)
					}
				}
				synctest.Wait()
				// Without a start nothing can find p.
				if n := len(tel.recorded()); n != 1 || len(s.Live()) != 0 {
					t.Errorf("%d records, %d live", n, len(s.Live()))
				}
				if stop {
					s.Drain(t.Context())
				} else {
					bubble.Pass(2 * time.Second)
				}
				rs := tel.recorded()
				if len(rs) != 2 || rs[1].Outcome != meter.Aborted || rs[1].End != 0 {
					t.Errorf("the records are %+v", rs)
				}
				s.Drain(t.Context())
			})
		})
	}
}

// A stream of entries ends with the service, so that a graceful stop can end.
func TestDrainEndsAccessLog(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stream, err := accesslog.NewAccessLogServiceClient(b.conn).StreamAccessLogs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(logMessage(entryOf("", 0, nil))); err != nil {
		t.Fatal(err)
	}
	b.drained()
	var answer accesslog.StreamAccessLogsResponse
	if err := stream.RecvMsg(&answer); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// A panic in telemetry costs no entry's stream.
func TestAccessLogPanics(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch } })
	b.telemetry.panicIn = "Unmatched"
	for range 2 {
		b.logged(entryOf("", 0, nil)) // the second is ambiguous
	}
	b.telemetry.panicIn = ""
	e := b.observed()
	e.send(timed(requestHeaders(true, append(chatHead()[:8], "x-request-id", "req-2")...)))
	e.arrived()
	entry := entryOf("", 0, clientHungUp)
	entry.Request.RequestId = "req-2"
	b.logged(entry)
	e.ended()
	if r := b.one(); r.Outcome != meter.ClientCancelled || b.telemetry.count(countPanic) != 1 {
		t.Errorf("outcome %s, %d panics", r.Outcome, b.telemetry.count(countPanic))
	}
}

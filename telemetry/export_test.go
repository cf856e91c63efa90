package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/inferspan/inferspan/processor/meter"
)

// tally counts what becomes of spans.
type tally struct {
	mu            sync.Mutex
	in, out, lost int
	events        int
	reasons       map[string]int
}

func (c *tally) queued(n int) { c.add(func() { c.in += n }) }
func (c *tally) sent(n int)   { c.add(func() { c.out += n }) }

func (c *tally) dropped(n int, reason string) {
	c.add(func() {
		c.lost += n
		if c.reasons == nil {
			c.reasons = make(map[string]int)
		}
		c.reasons[reason] += n
	})
}

func (c *tally) eventsSent(n int)                   { c.add(func() { c.events += n }) }
func (c *tally) eventsDropped(n int, reason string) { c.dropped(n, "events "+reason) }

func (c *tally) add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// exportTo starts an export whose timer never fires: batches go when they are
// full, or at the end.
func exportTo(x sdktrace.SpanExporter, maxBytes, batchSize int, c spanCounts) *export {
	return exportAfter(x, maxBytes, batchSize, c, nil)
}

// exportAfter is exportTo with the clock between tries in the test's hand.
func exportAfter(x sdktrace.SpanExporter, maxBytes, batchSize int, c spanCounts, after func(time.Duration) <-chan time.Time) *export {
	log := slog.New(slog.DiscardHandler)
	o := exportOptions{delay: time.Hour, timeout: time.Hour, batchSize: batchSize, after: after}
	return startExport(o, maxBytes, newSpanMaker(traceConfig("", "", ""), sdkresource.Empty(), ""), x, nil, c, log)
}

// plainEntry is a record of one span.
func plainEntry(t *testing.T) entry {
	t.Helper()
	r := richRecord()
	r.Route = meter.Route{}
	return newEntry(r, rulesOf(t, quiet()))
}

// TestOutage: while the collector does not answer, memory stays within the
// bound, and every span is counted once.
func TestOutage(t *testing.T) {
	x, c := newFakeExporter(), &tally{}
	e := plainEntry(t)
	room := 10
	out := exportTo(x, room*e.bytes+e.bytes/2, 4, c)
	for range 4 {
		if !out.offer(e) {
			t.Fatal("no room in an empty queue")
		}
	}
	first := <-x.got // the collector hangs from here on
	accepted := 4
	for range 30 {
		if out.offer(e) {
			accepted++
		}
		out.queue.mu.Lock()
		if out.queue.bytes > out.queue.maxBytes {
			t.Fatalf("%d bytes wait, %d are allowed", out.queue.bytes, out.queue.maxBytes)
		}
		out.queue.mu.Unlock()
	}
	if len(first) != 4 || accepted != room {
		t.Errorf("batch of %d, %d accepted, want 4 and %d: what is under way takes room too", len(first), accepted, room)
	}
	x.answer <- errors.New("unavailable")
	second := <-x.got // the rest: it fills a batch
	x.answer <- nil
	done := make(chan error)
	go func() { done <- out.shutdown(context.Background()) }()
	third := <-x.got
	x.answer <- nil
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c.in != accepted || c.out != len(second)+len(third) || c.in != c.out+c.reasons[dropFailed] ||
		c.reasons[dropFailed] != 4 || c.reasons[dropQueueFull] != 34-accepted || c.reasons[dropShutdown] != 0 {
		t.Errorf("queued %d, sent %d, dropped %v", c.in, c.out, c.reasons)
	}
	if out.queue.bytes != 0 || out.queue.spans != 0 {
		t.Errorf("%d bytes and %d spans were never released", out.queue.bytes, out.queue.spans)
	}
}

// TestShutdownWithAHangingCollector: what could not go out is dropped, counted,
// and nothing waits beyond the deadline.
func TestShutdownWithAHangingCollector(t *testing.T) {
	x, c := newFakeExporter(), &tally{}
	out := exportTo(x, 1<<20, 2, c)
	for range 5 {
		out.offer(plainEntry(t))
	}
	<-x.got
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- out.shutdown(ctx) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the time was up", err)
	}
	if c.in != 5 || c.out != 0 || c.reasons[dropShutdown] != 5 {
		t.Errorf("queued %d, sent %d, dropped %v", c.in, c.out, c.reasons)
	}
	if out.offer(plainEntry(t)) || c.reasons[dropShutdown] != 6 {
		t.Errorf("after the end: dropped %v", c.reasons)
	}
}

func TestBatchesAreBoundedInBytesAndSpans(t *testing.T) {
	q := newQueue(1<<30, 0)
	for _, wire := range []int{10, 10, 30, 5, 5, 5} {
		q.put(entry{wire: wire, spans: 1})
	}
	var sizes []int
	for more := true; more; {
		var batch []entry
		batch, more = q.take(2, 25)
		sizes = append(sizes, len(batch))
	}
	if got, want := fmt.Sprint(sizes), "[2 1 2 1]"; got != want {
		t.Errorf("batches of %s, want %s", got, want)
	}
}

func TestQueueBoundInSpans(t *testing.T) {
	q := newQueue(1<<30, 3)
	for i, want := range []bool{true, false, true} {
		if ok, _ := q.put(entry{spans: 2 - i/2}); ok != want {
			t.Errorf("put %d: %v, want %v", i, ok, want)
		}
	}
}

// TestEstimateOfBatchSize: the estimate is at least what goes over the wire, and
// not far off.
func TestEstimateOfBatchSize(t *testing.T) {
	for name, r := range map[string]*meter.Record{"rich": richRecord(), "long": stalledRecord()} {
		x := &keepingExporter{}
		out := exportTo(x, 1<<20, 10, &tally{})
		e := newEntry(r, rulesOf(t, quiet()))
		out.offer(e)
		if err := out.shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := wireSize(t, x.spans)
		if got > e.wire || got < e.wire/3 {
			t.Errorf("%s: %d bytes, estimated %d", name, got, e.wire)
		}
	}
}

// stalledRecord shows all that a span can.
func stalledRecord() *meter.Record {
	r := longRecord(2)
	r.Stalls = 1
	r.Timeline = meter.Timeline{Gaps100us: make([]int32, 512), Tokens: make([]int32, 512), Stride: 1}
	for i := range r.Timeline.Gaps100us {
		r.Timeline.Gaps100us[i], r.Timeline.Tokens[i] = 300, 200
	}
	return r
}

// traceSink is a collector over HTTP and gRPC that answers as it is told.
type traceSink struct {
	collectortrace.UnimplementedTraceServiceServer
	rejected int64
	mu       sync.Mutex
	spans    int
	bytes    int
}

func (s *traceSink) Export(_ context.Context, r *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += proto.Size(r)
	for _, of := range r.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			s.spans += len(scope.GetSpans())
		}
	}
	return &collectortrace.ExportTraceServiceResponse{PartialSuccess: &collectortrace.ExportTracePartialSuccess{
		RejectedSpans: s.rejected, ErrorMessage: "too old",
	}}, nil
}

func (s *traceSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectortrace.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, _ := s.Export(r.Context(), &request)
	out, _ := proto.Marshal(response)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func (s *traceSink) serve(t *testing.T, protocol string) (endpoint string) {
	t.Helper()
	if protocol == protocolGRPC {
		return s.serveGRPC(t)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *traceSink) serveGRPC(t *testing.T) (endpoint string) {
	t.Helper()
	return serveTraces(t, s)
}

// wireSize is the size of spans as a collector gets them.
func wireSize(t *testing.T, spans []sdktrace.ReadOnlySpan) int {
	t.Helper()
	sink := &traceSink{}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.serveGRPC(t))
	x, err := environment{get: environ()}.newSpanExporter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.ExportSpans(t.Context(), spans); err != nil {
		if _, partial := rejectedSpans(err); !partial {
			t.Fatal(err)
		}
	}
	if err := x.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sink.bytes
}

// TestPartialSuccess pins how the SDK's exporters report it.
func TestPartialSuccess(t *testing.T) {
	for _, protocol := range []string{protocolGRPC, protocolHTTP} {
		for _, rejected := range []int{0, 2} {
			sink := &traceSink{rejected: int64(rejected)}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.serve(t, protocol))
			x, err := environment{get: environ("OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol)}.newSpanExporter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := &tally{}
			out := exportTo(x, 1<<20, 10, c)
			for range 5 {
				out.offer(plainEntry(t))
			}
			if err := out.shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if sink.spans != 5 || c.in != 5 || c.out != 5-rejected || c.reasons[dropRejected] != rejected || c.lost != rejected {
				t.Errorf("%s: %d arrived, queued %d, sent %d, dropped %v, want %d rejected", protocol, sink.spans, c.in, c.out, c.reasons, rejected)
			}
		}
	}
	for _, err := range []error{nil, io.EOF, errors.Join(io.EOF, io.ErrUnexpectedEOF)} {
		if n, partial := rejectedSpans(err); partial || n != 0 {
			t.Errorf("%v taken for a partial success of %d", err, n)
		}
	}
}

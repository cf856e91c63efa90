package telemetry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// away is what an exporter says of a collector that is not there.
var away = status.Error(codes.Unavailable, "connection refused")

// tries is the clock between two tries: it notes how long each waits, and lets
// time pass when the test says so.
type tries struct {
	waits chan time.Duration
	pass  chan time.Time
}

func newTries() *tries {
	return &tries{waits: make(chan time.Duration), pass: make(chan time.Time)}
}

func (c *tries) after(d time.Duration) <-chan time.Time {
	c.waits <- d
	return c.pass
}

// TestCollectorAwayForAnHour: what was accepted waits and arrives, in order and
// once; what had no room is counted; and memory stays within the bound.
func TestCollectorAwayForAnHour(t *testing.T) {
	x, c, clock := newFakeExporter(), &tally{}, newTries()
	e := plainEntry(t)
	const room, offered, batch = 10, 30, 4
	out := exportAfter(x, room*e.bytes+e.bytes/2, batch, c, clock.after)
	accepted := 0
	for range offered {
		if out.offer(e) {
			accepted++
		}
	}
	var passed time.Duration
	var waits []time.Duration
	for passed < time.Hour {
		if got := <-x.got; len(got) != batch {
			t.Fatalf("a batch of %d, want %d", len(got), batch)
		}
		x.answer <- away
		wait := <-clock.waits
		waits, passed = append(waits, wait), passed+wait
		if out.offer(e) {
			t.Fatal("room for more than fits")
		}
		clock.pass <- time.Time{}
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}; !slices.Equal(waits[:len(want)], want) {
		t.Errorf("waits %v, want %v", waits[:len(want)], want)
	}
	done := make(chan error)
	arrived := 0
	for arrived < room/batch*batch {
		arrived += len(<-x.got)
		x.answer <- nil
	}
	go func() { done <- out.shutdown(context.Background()) }()
	arrived += len(<-x.got)
	x.answer <- nil
	if err := <-done; err != nil {
		t.Error(err)
	}
	if accepted != room || arrived != room || c.in != room || c.out != room ||
		c.lost != c.reasons[dropQueueFull] || c.lost != offered-room+len(waits) {
		t.Errorf("accepted %d, arrived %d, queued %d, sent %d, dropped %v", accepted, arrived, c.in, c.out, c.reasons)
	}
	if out.queue.bytes != 0 || out.queue.spans != 0 {
		t.Errorf("%d bytes and %d spans were never released", out.queue.bytes, out.queue.spans)
	}
}

// TestShutdownWhileTheCollectorIsAway: each batch is tried once more, without
// waiting, and counted.
func TestShutdownWhileTheCollectorIsAway(t *testing.T) {
	x, c, clock := newFakeExporter(), &tally{}, newTries()
	out := exportAfter(x, 1<<20, 2, c, clock.after)
	for range 3 {
		out.offer(plainEntry(t))
	}
	<-x.got
	x.answer <- away
	<-clock.waits
	done := make(chan error)
	go func() { done <- out.shutdown(context.Background()) }()
	<-x.got
	x.answer <- away
	<-x.got // the rest
	x.answer <- nil
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c.in != 3 || c.out != 1 || c.reasons[dropShutdown] != 2 || c.lost != 2 {
		t.Errorf("queued %d, sent %d, dropped %v", c.in, c.out, c.reasons)
	}
}

// refusing answers every export with the same error.
type refusing struct {
	collectortrace.UnimplementedTraceServiceServer
	err error
}

func (r refusing) Export(context.Context, *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	return nil, r.err
}

// TestTemporary pins what the SDK's exporters say of a collector that is away,
// busy, or will not have what it gets.
func TestTemporary(t *testing.T) {
	nobody := func() string {
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		return "http://" + ln.Addr().String()
	}
	over := func(protocol, endpoint string, want bool) {
		t.Helper()
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		x, err := environment{get: environ("OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol)}.newSpanExporter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		spans := newSpanMaker(traceConfig("", "", ""), nil, "").spans([]entry{plainEntry(t)})
		// The exporter tries by itself as long as it may; what it would not try again
		// has all the time that it needs, as a deadline that passes is temporary.
		ctx := t.Context()
		if want {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 100*ms)
			defer cancel()
		}
		err = x.ExportSpans(ctx, spans)
		if err == nil || temporary(err) != want {
			t.Errorf("%s: temporary %v, want %v: %v", protocol, temporary(err), want, err)
		}
		if err := x.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	over(protocolGRPC, nobody(), true)
	over(protocolHTTP, nobody(), true)
	for code, want := range map[int]bool{400: false, 401: false, 413: false, 429: true, 500: false, 502: true, 503: true, 504: true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		over(protocolHTTP, server.URL, want)
		server.Close()
	}
	for code, want := range map[codes.Code]bool{
		codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Aborted: true,
		codes.ResourceExhausted: false, codes.InvalidArgument: false, codes.Unauthenticated: false, codes.Unimplemented: false,
	} {
		over(protocolGRPC, serveTraces(t, refusing{err: status.Error(code, "no")}), want)
	}
	if temporary(errors.New("something else")) {
		t.Error("an unknown error is taken for temporary")
	}
}

// serveTraces serves s over gRPC until the test ends.
func serveTraces(t *testing.T, s collectortrace.TraceServiceServer) (endpoint string) {
	t.Helper()
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, s)
	return "http://" + serveGRPC(t, server)
}

// serveGRPC serves s until the test or the benchmark ends.
func serveGRPC(tb testing.TB, s *grpc.Server) (addr string) {
	tb.Helper()
	ln, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	tb.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
	return ln.Addr().String()
}

// TestShutdownTwice: the second time there is nothing left to do.
func TestShutdownTwice(t *testing.T) {
	tel := open(t, quiet(), &keepingExporter{})
	shut(t, tel)
	// The SDK's reader says that it was shut down before.
	if err := tel.export.shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

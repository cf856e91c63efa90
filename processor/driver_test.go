package processor

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/inferspan/inferspan/processor/meter"
)

// limit bounds what a test waits for; none of them depends on its length.
const limit = 20 * time.Second

// bench is a Service behind a real gRPC server, and a connection to it.
type bench struct {
	t         *testing.T
	service   *Service
	telemetry *fakeTelemetry
	router    *fakeRouter
	journal   *fakeJournal
	conn      *grpc.ClientConn
}

func newBench(t *testing.T, tune ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, telemetry: newFakeTelemetry(), router: newFakeRouter(), journal: &fakeJournal{}}
	c := Config{Telemetry: b.telemetry, Router: b.router, Journal: b.journal}
	for _, f := range tune {
		f(&c)
	}
	b.service = New(c)
	server := grpc.NewServer(append(ServerOptions(), grpc.ForceServerCodecV2(poisoning{newCodec()}))...)
	b.service.Register(server)
	listener := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///envoy",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)), // Envoy has no limit
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	b.conn = conn
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		b.drained()
		if u := b.router.unbalanced(); u != "" {
			t.Errorf("in flight at the end: %s", u)
		}
		if l := b.service.Live(); len(l) != 0 {
			t.Errorf("live at the end: %+v", l)
		}
		if n := b.service.held.bytes.Load(); n != 0 {
			t.Errorf("%d bytes are held at the end", n)
		}
	})
	return b
}

// drained waits until no stream is left.
func (b *bench) drained() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	b.service.Drain(ctx)
	if ctx.Err() != nil {
		b.t.Error("streams were left")
	}
}

// one returns the one record that there must be once all streams are over.
func (b *bench) one() *meter.Record {
	b.t.Helper()
	b.drained()
	rs := b.telemetry.recorded()
	if len(rs) != 1 {
		b.t.Fatalf("got %d records, want 1", len(rs))
	}
	if len(b.journal.records) != 1 || b.journal.records[0] != rs[0] {
		b.t.Errorf("the journal has %d records, want the same one", len(b.journal.records))
	}
	return rs[0]
}

// envoy is one stream, from Envoy's side.
type envoy struct {
	t      *testing.T
	stream extproc.ExternalProcessor_ProcessClient
	cancel context.CancelFunc
	// first is put into the first message.
	first     *extproc.ProtocolConfiguration
	observe   bool
	metadata  *core.Metadata
	sentFirst bool
}

// open opens a stream; pairs are gRPC metadata.
func (b *bench) open(pairs ...string) *envoy {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), pairs...), limit)
	b.t.Cleanup(cancel)
	stream, err := extproc.NewExternalProcessorClient(b.conn).Process(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return &envoy{t: b.t, stream: stream, cancel: cancel}
}

func (b *bench) inline(request, response filter.ProcessingMode_BodySendMode) *envoy {
	b.t.Helper()
	e := b.open()
	e.first = &extproc.ProtocolConfiguration{RequestBodyMode: request, ResponseBodyMode: response}
	return e
}

func (b *bench) observed() *envoy {
	b.t.Helper()
	e := b.open()
	e.observe = true
	return e
}

func (e *envoy) send(m *extproc.ProcessingRequest) {
	e.t.Helper()
	m.ObservabilityMode = e.observe
	if m.MetadataContext = e.metadata; m.MetadataContext == nil {
		m.MetadataContext = &core.Metadata{}
	}
	if !e.sentFirst {
		m.ProtocolConfig = e.first
		e.sentFirst = true
	}
	// A stream that we ended meanwhile shows at the next receive.
	if err := e.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		e.t.Fatalf("send: %v", err)
	}
}

// recv returns the next reply; nil at the stream's end with OK.
func (e *envoy) recv() *extproc.ProcessingResponse {
	e.t.Helper()
	r, err := e.stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		e.t.Fatalf("receive: %v", err)
	}
	return r
}

// arrived waits for the headers of an observed stream, which come with the first
// message, so that Envoy does not replay it elsewhere.
func (e *envoy) arrived() {
	e.t.Helper()
	if _, err := e.stream.Header(); err != nil {
		e.t.Fatal(err)
	}
}

// ended waits for the stream's end with OK, which no reply precedes.
func (e *envoy) ended() {
	e.t.Helper()
	if r := e.recv(); r != nil {
		e.t.Fatalf("got %v, want the stream's end", r)
	}
}

// hangUp closes as Envoy does after a complete exchange.
func (e *envoy) hangUp() { e.cancel() }

// closeSend closes as Envoy does when the client or the upstream broke off.
func (e *envoy) closeSend() {
	e.t.Helper()
	if err := e.stream.CloseSend(); err != nil {
		e.t.Fatal(err)
	}
}

func headerMap(pairs ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

func requestHeaders(end bool, pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extproc.HttpHeaders{Headers: headerMap(pairs...), EndOfStream: end},
	}}
}

func responseHeaders(end bool, pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: &extproc.HttpHeaders{Headers: headerMap(pairs...), EndOfStream: end},
	}}
}

func requestBody(body string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
		RequestBody: &extproc.HttpBody{Body: []byte(body), EndOfStream: end},
	}}
}

func responseBody(body string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
		ResponseBody: &extproc.HttpBody{Body: []byte(body), EndOfStream: end},
	}}
}

func requestTrailers() *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestTrailers{
		RequestTrailers: &extproc.HttpTrailers{Trailers: headerMap("x-trailer", "1")},
	}}
}

func responseTrailers() *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{
		ResponseTrailers: &extproc.HttpTrailers{Trailers: headerMap("grpc-status", "0")},
	}}
}

// attributes puts attributes into m.
func attributes(m *extproc.ProcessingRequest, pairs map[string]any) *extproc.ProcessingRequest {
	s, err := structpb.NewStruct(pairs)
	if err != nil {
		panic(err)
	}
	m.Attributes = map[string]*structpb.Struct{"envoy.filters.http.ext_proc": s}
	return m
}

// subset is metadata with a subset hint.
func subset(endpoints ...any) *core.Metadata {
	s, err := structpb.NewStruct(map[string]any{"x-gateway-destination-endpoint-subset": endpoints})
	if err != nil {
		panic(err)
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.lb.subset_hint": s}}
}

// chatHead are the headers of a chat request.
func chatHead() []string {
	return []string{
		":method", "POST", ":path", "/v1/chat/completions?key=secret", ":authority", "api",
		"content-type", "application/json", "x-request-id", "req-1",
	}
}

var streamHead = []string{":status", "200", "content-type", "text/event-stream"}

package processor

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/inferspan/inferspan/processor/meter"
)

// pipe is a gRPC server stream in memory, so that time can be scripted. Its
// receive ends when the handler returns or the status is written, as gRPC's does.
type pipe struct {
	ctx    context.Context
	cancel context.CancelFunc
	in     chan *extproc.ProcessingRequest // closed: Envoy half-closed

	mu     sync.Mutex
	sent   []*extproc.ProcessingResponse
	status *status.Status // read after the end of ctx
	result chan error
}

// transport is what gRPC has below the stream.
type transport struct{ *pipe }

func (transport) Method() string               { return extproc.ExternalProcessor_Process_FullMethodName }
func (transport) SetTrailer(metadata.MD) error { return nil }

func (t transport) WriteStatus(s *status.Status) error {
	t.status = s
	t.cancel()
	return nil
}

func (p *pipe) Context() context.Context          { return p.ctx }
func (p *pipe) SetHeader(metadata.MD) error       { return nil }
func (p *pipe) SendHeader(metadata.MD) error      { return nil }
func (p *pipe) SetTrailer(metadata.MD)            {}
func (p *pipe) replies() int                      { p.mu.Lock(); defer p.mu.Unlock(); return len(p.sent) }
func (p *pipe) send(m *extproc.ProcessingRequest) { p.in <- m }

func (p *pipe) SendMsg(m any) error {
	if p.ctx.Err() != nil {
		panic("a reply is sent after the handler returned")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := newCodec().Marshal(m)
	if err != nil {
		return err
	}
	var r extproc.ProcessingResponse
	if err := proto.Unmarshal(b.Materialize(), &r); err != nil {
		return err
	}
	p.sent = append(p.sent, &r)
	return nil
}

func (p *pipe) RecvMsg(m any) error {
	select {
	case r, ok := <-p.in:
		if !ok {
			return io.EOF
		}
		b, err := proto.Marshal(r)
		if err != nil {
			return err
		}
		return newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	case <-p.ctx.Done():
		return status.FromContextError(p.ctx.Err()).Err()
	}
}

// serve runs a stream of s.
func serve(s *Service) *pipe {
	p := &pipe{in: make(chan *extproc.ProcessingRequest), result: make(chan error, 1)}
	ctx := grpc.NewContextWithServerTransportStream(context.Background(), transport{p})
	p.ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		err := s.process(p)
		if p.ctx.Err() != nil {
			err = p.status.Err() // came first
		}
		p.cancel()
		p.result <- err
	}()
	return p
}

func newScriptedService() (*Service, *fakeTelemetry) {
	tel := newFakeTelemetry()
	return New(Config{Telemetry: tel, Router: newFakeRouter(), IdleTimeout: time.Minute}), tel
}

func config(m *extproc.ProcessingRequest, request, response bodyMode) *extproc.ProcessingRequest {
	m.ProtocolConfig = &extproc.ProtocolConfiguration{RequestBodyMode: request, ResponseBodyMode: response}
	return m
}

// At the drain's deadline streams that Envoy can do without end with OK.
func TestDrainEndsStreams(t *testing.T) {
	for name, first := range map[string]*extproc.ProcessingRequest{
		"BUFFERED":   config(requestHeaders(false, chatHead()...), buffered, streamed),
		"STREAMED":   config(requestHeaders(false, chatHead()...), streamed, streamed),
		"observe":    {ObservabilityMode: true, Request: requestHeaders(false, chatHead()...).Request},
		"split":      config(requestHeaders(true, chatHead()...), duplex, none),
		"no message": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, tel := newScriptedService()
				p := serve(s)
				if first != nil {
					p.send(first)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begun := time.Now()
				s.Drain(ctx)
				if took := time.Since(begun); took != 10*time.Second {
					t.Errorf("the drain took %v, want 10 s", took)
				}
				if err := <-p.result; err != nil {
					t.Errorf("the stream ended with %v", err)
				}
				rs := tel.recorded()
				if first == nil || name == "split" {
					if len(rs) != 0 {
						t.Errorf("got %d records", len(rs))
					}
					return
				}
				if len(rs) != 1 || rs[0].Outcome != meter.Lost || rs[0].End != 10*time.Second {
					t.Errorf("the records are %+v", rs)
				}
			})
		})
	}
}

// FULL_DUPLEX_STREAMED can't end before its bytes are through.
func TestDrainWaitsForFullDuplex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tel := newScriptedService()
		p := serve(s)
		p.send(config(requestHeaders(true, chatHead()...), duplex, duplex))
		p.send(responseHeaders(false, streamHead...))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		drained := make(chan struct{})
		go func() {
			s.Drain(ctx)
			close(drained)
		}()
		synctest.Wait()
		p.send(responseBody(token+finished, false))
		synctest.Wait()
		select {
		case <-drained:
			t.Fatal("the drain did not wait")
		default:
		}
		p.send(responseBody("data: [DONE]\n\n", true))
		<-drained
		if err := <-p.result; err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if rs := tel.recorded(); len(rs) != 1 || rs[0].Outcome != meter.OK {
			t.Errorf("the records are %+v", rs)
		}
		if p.replies() != 4 {
			t.Errorf("got %d replies, want 4", p.replies())
		}
	})
}

func TestDrainWithoutStreams(t *testing.T) {
	s, _ := newTestService()
	s.Drain(t.Context())
	s.Drain(t.Context())
}

// A stream on which nothing comes is ended; any message keeps it.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tel := newScriptedService()
		p := serve(s)
		begun := time.Now()
		p.send(config(requestHeaders(true, chatHead()...), buffered, streamed))
		time.AfterFunc(50*time.Second, func() { p.send(responseHeaders(false, streamHead...)) })
		if err := <-p.result; err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if took := time.Since(begun); took != 110*time.Second {
			t.Errorf("it ended after %v, want 110 s", took)
		}
		s.Drain(t.Context())
		if rs := tel.recorded(); len(rs) != 1 || rs[0].Outcome != meter.Lost {
			t.Errorf("the records are %+v", rs)
		}
		if tel.count(countIdle) != 1 {
			t.Error("it is not counted")
		}
	})
}

// A transport's fault lets the traffic go on where it can.
func TestTransportFault(t *testing.T) {
	for _, mode := range []bodyMode{streamed, duplex} {
		t.Run(mode.String(), func(t *testing.T) {
			s, tel := newTestService()
			l := &loop{s: s, x: newExchange(s, &replies{}, caller{})}
			if _, err := l.x.handle(message{phase: "request_headers", headers: chatHead(), request: 4, response: 4}.wire(), epoch); err != nil {
				t.Fatal(err)
			}
			if mode == duplex {
				l.x.responseMode = 5
			}
			err := l.closed(status.Error(codes.ResourceExhausted, "message of 70 MB"), epoch)
			if want := mode == duplex; (status.Code(err) == codes.Internal) != want {
				t.Errorf("Envoy gets %v", err)
			}
			if rs := tel.recorded(); len(rs) != 1 || rs[0].Outcome != meter.Lost {
				t.Errorf("the records are %+v", rs)
			}
		})
	}
}

// Over gRPC too the end of a stream on which nothing comes is OK.
func TestIdleStreamEndsWithOK(t *testing.T) {
	b := newBench(t, func(c *Config) { c.IdleTimeout = 10 * time.Millisecond })
	e := b.observed()
	e.send(requestHeaders(false, chatHead()...))
	e.ended()
	if r := b.one(); r.Outcome != meter.Lost {
		t.Errorf("the record is %+v", r)
	}
}

// A stream that can't be ended while it receives is not taken.
func TestStreamWithoutStatusWriter(t *testing.T) {
	s, _ := newScriptedService()
	if err := s.process(&pipe{ctx: t.Context()}); status.Code(err) != codes.Internal {
		t.Errorf("the stream ends with %v", err)
	}
}

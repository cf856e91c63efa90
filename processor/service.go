package processor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/inferspan/inferspan/processor/accesslog"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// Service is the ext_proc service. It is safe for concurrent use.
type Service struct {
	cfg     Config
	applied atomic.Pointer[Config] // by Apply; nil: cfg still holds
	origins *origins
	live    liveTable
	usage   usagePools
	held    heldTotal

	mu      sync.Mutex
	streams map[*loop]struct{} // under way
	none    chan struct{}      // closed when none is left, and let go; nil: nobody waits
	// draining: streams end where Envoy can go on without us.
	draining bool

	join     *accesslog.Join
	overOnce sync.Once
	over     chan struct{} // closed: no exchange is left, and none waits for the access log
}

// New returns a Service that works with c.
func New(c Config) *Service {
	s := &Service{
		cfg:     c.withDefaults(),
		origins: newOrigins(),
		streams: make(map[*loop]struct{}),
		over:    make(chan struct{}),
	}
	s.join = accesslog.New(accesslog.Config{Unmatched: s.unmatched, Unseen: s.unseen, Wait: c.AccessLogWait})
	return s
}

// Register makes g serve Envoy's calls with s.
func (s *Service) Register(g grpc.ServiceRegistrar) {
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: wire.ServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    wire.MethodName,
			Handler:       func(_ any, ss grpc.ServerStream) error { return s.process(ss) },
			ServerStreams: true,
			ClientStreams: true,
		}},
	}, s)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: wire.AccessLogServiceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    wire.AccessLogMethodName,
			Handler:       func(_ any, ss grpc.ServerStream) error { return s.logs(ss) },
			ClientStreams: true,
		}},
	}, s)
}

// Live returns the exchanges under way. One leaves at its end mark or its
// close, whichever is first.
func (s *Service) Live() []meter.Live { return s.live.snapshot() }

// Drain waits until no stream is left. When ctx ends it ends those that Envoy
// can go on without, between two messages, so that their traffic passes
// unwatched; streams in FULL_DUPLEX_STREAMED, whose bytes go through us, it
// waits for. Records that wait for the access log are handed out then, and
// streams of it end. Keeping new streams away is the caller's: GracefulStop
// beside it.
func (s *Service) Drain(ctx context.Context) {
	defer s.overOnce.Do(func() {
		close(s.over)
		s.join.Close()
	})
	select {
	case <-s.empty():
		return
	case <-ctx.Done():
	}
	for _, l := range s.drain() {
		l.drain()
	}
	<-s.empty()
}

// drain has streams end from now on, and returns those under way.
func (s *Service) drain() []*loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	return slices.Collect(maps.Keys(s.streams))
}

// empty returns a channel that is closed once no stream is under way.
func (s *Service) empty() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	return s.none
}

func (s *Service) enter(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[l] = struct{}{}
	l.stop.Store(s.draining)
}

func (s *Service) leave(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, l)
	if len(s.streams) == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

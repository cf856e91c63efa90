package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// The events that a Service counts.
const (
	countPanic    = "panic"
	countSpurious = "spurious_message" // out of order, or of no phase
	countAfterEnd = "message_after_end"
	countLost     = "stream_lost" // it broke off by a fault of the transport or of ours
	countIdle     = "stream_idle"
	countDrained  = "stream_drained"
	countUnhidden = "usage_not_hidden" // the client sees usage that we asked for
	countHeldLost = "held_event_lost"  // trailers ended an edited stream within an event
)

// loop is one ext_proc stream. The goroutine of its handler receives and answers;
// others may end the receive under way, where nothing is being worked on.
type loop struct {
	s         *Service
	stream    *wire.Stream
	header    func() error // sends the response headers of gRPC
	transport statusWriter
	x         *exchange
	m         wire.Message

	// state is where the handler is. Only in loopReceiving may others end the
	// stream.
	state atomic.Int32
	// stop asks the handler to end at the next boundary.
	stop atomic.Bool
	// bound says that Envoy's bytes go through us: the stream can't end yet.
	bound atomic.Bool
	// Envoy's access log tells of a stream that Envoy still holds open, in
	// observe mode: seen is how much of the response's body came.
	observe atomic.Bool
	seen    atomic.Int64
	opened  time.Time
	// heard is when the last message came, after opened.
	heard atomic.Int64
	idle  *time.Timer
}

const (
	loopWorking int32 = iota
	loopReceiving
	loopEnded // nothing is received any more
)

// process serves one stream. Its error is what Envoy gets: nil lets the traffic
// go on without us.
func (s *Service) process(ss grpc.ServerStream) error {
	ctx := ss.Context()
	transport, ok := statusWriterOf(ctx)
	if !ok {
		return status.Error(codes.Internal, "this stream can't be ended while it receives: it is none of this release of grpc-go")
	}
	l := &loop{
		s:         s,
		stream:    wire.NewStream(ss),
		header:    func() error { return ss.SendHeader(metadata.MD{}) },
		transport: transport,
		opened:    s.cfg.Now(),
	}
	l.x = newExchange(s, l.stream, callerOf(ctx))
	l.x.wake = l.endSettled
	s.enter(l)
	defer s.leave(l)
	// Whatever way serve ends, a panic too.
	defer l.x.dropHeld()
	l.startIdle()
	defer l.stopIdle()
	return l.serve()
}

// caller is what the gRPC stream tells of the Envoy that opened it.
type caller struct {
	peer, traceparent, tracestate string
}

func callerOf(ctx context.Context) caller {
	var c caller
	if p, ok := peer.FromContext(ctx); ok {
		c.peer = peerKey(p.Addr)
	}
	if v := metadata.ValueFromIncomingContext(ctx, traceparentHeader); len(v) > 0 {
		c.traceparent = v[0]
	}
	if v := metadata.ValueFromIncomingContext(ctx, tracestateHeader); len(v) > 0 {
		c.tracestate = v[0]
	}
	return c
}

// serve receives and answers until the stream is over.
func (l *loop) serve() (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.s.panicked("loop", p, l.x.ids()...)
			err = l.lost()
		}
	}()
	for {
		if !l.beginReceive() {
			if l.settled() {
				l.x.closed(l.s.cfg.Now())
				return nil
			}
			l.s.cfg.Telemetry.Count(countDrained)
			return l.lost()
		}
		err := l.stream.Recv(&l.m)
		now := l.s.cfg.Now()
		if !l.state.CompareAndSwap(loopReceiving, loopWorking) {
			// It was ended: nothing can be sent any more.
			if l.settled() {
				l.x.closed(now)
			} else {
				l.x.finish(meter.CauseLost, now)
			}
			return nil
		}
		if err != nil {
			l.x.passedBy = l.x.passedBy || !errors.Is(err, io.EOF)
			return l.closed(err, now)
		}
		l.heard.Store(int64(now.Sub(l.opened)))
		over, err := l.handle(now)
		if err != nil {
			return l.closed(err, now)
		}
		if over {
			return nil
		}
		l.bound.Store(l.x.bound())
		l.observe.Store(l.x.observe)
		l.seen.Store(l.x.response.bytes)
		l.m.SkipSubset = l.x.request.decided || l.x.observe
	}
}

// handle answers one message and measures what it took us.
func (l *loop) handle(now time.Time) (over bool, err error) {
	if l.m.Observe && !l.x.begun {
		// Until our headers are there, Envoy may replay what it sent to another
		// replica, which would falsify every time.
		if err := l.header(); err != nil {
			return false, fmt.Errorf("send the headers of an observed stream: %w", err)
		}
	}
	over, err = l.x.handle(&l.m, now)
	answered := l.x.answered
	if answered.IsZero() {
		answered = l.s.cfg.Now()
	}
	l.s.cfg.Telemetry.Overhead(l.m.Phase.String(), answered.Sub(now))
	return over, err
}

// closed ends the exchange of a stream that failed with err, which Envoy's own
// way of closing is too.
func (l *loop) closed(err error, now time.Time) error {
	if peerGone(err) {
		l.x.closed(now)
		return nil
	}
	l.s.cfg.Telemetry.Count(countLost)
	l.s.cfg.Logger.Warn("stream lost", append(l.x.ids(), "error", err)...)
	return l.lost()
}

// peerGone tells that Envoy closed the stream or went away, as which of the two
// it shows is chance.
func peerGone(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return true
	}
	c := status.Code(err)
	return c == codes.Canceled || c == codes.Unavailable
}

// lost ends the exchange of a stream that ends while its traffic goes on. Where
// bytes go through us they would be missing, and Envoy must know.
func (l *loop) lost() error {
	bound := l.x.bound()
	l.x.finish(meter.CauseLost, l.s.cfg.Now())
	if bound {
		return status.Error(codes.Internal, "the stream broke off before its body was complete")
	}
	return nil
}

// caught, deferred, ends a panic in what, which belongs to no exchange.
func (s *Service) caught(what string) {
	if p := recover(); p != nil {
		s.panicked(what, p)
	}
}

// panicked tells of a panic that was caught in what, in the exchange of ids.
func (s *Service) panicked(what string, p any, ids ...any) {
	s.cfg.Telemetry.Count(countPanic)
	s.cfg.Logger.Error("panic caught", append(ids, "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
}

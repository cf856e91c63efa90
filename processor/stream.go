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

// loop is one ext_proc stream. A goroutine of its own receives and answers,
// because only the handler's return ends a receive under way: the handler
// waits, and returns when the stream is to end while nothing is being worked on.
type loop struct {
	s      *Service
	stream *wire.Stream
	header func() error // sends the response headers of gRPC
	x      *exchange
	m      wire.Message

	// state is where the receiving goroutine is. Only in loopReceiving may the
	// handler end the stream.
	state atomic.Int32
	// stop asks the receiving goroutine to end at the next boundary.
	stop atomic.Bool
	// bound says that Envoy's bytes go through us: the stream can't end yet.
	bound atomic.Bool
	// Envoy's access log tells of a stream that Envoy still holds open, in
	// observe mode: entry says that it did, and seen is how much of the response's
	// body came.
	entry   chan struct{} // has room for one
	observe atomic.Bool
	seen    atomic.Int64
	opened  time.Time
	// heard is when the last message came, after opened.
	heard atomic.Int64
	done  chan error // has room for the one result
}

const (
	loopWorking int32 = iota
	loopReceiving
	loopEnded // the handler has ended the stream, or is asked to
)

// process serves one stream. Its error is what Envoy gets: nil lets the traffic
// go on without us.
func (s *Service) process(ss grpc.ServerStream) error {
	ctx := ss.Context()
	l := &loop{
		s:      s,
		stream: wire.NewStream(ss),
		header: func() error { return ss.SendHeader(metadata.MD{}) },
		opened: s.cfg.Now(),
		entry:  make(chan struct{}, 1),
		done:   make(chan error, 1),
	}
	l.x = newExchange(s, l.stream, callerOf(ctx))
	l.x.wake = func() {
		select {
		case l.entry <- struct{}{}:
		default:
		}
	}
	s.enter()
	go l.run()
	return l.wait()
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

// wait returns when the stream is over, or when it is to end: on drain where
// Envoy can go on without us, and after IdleTimeout without a message in any
// case.
func (l *loop) wait() error {
	timeout := l.x.cfg.IdleTimeout
	idle := time.NewTimer(timeout)
	defer idle.Stop()
	draining := l.s.draining
	for {
		select {
		case err := <-l.done:
			return err
		case <-draining:
			draining = nil
			l.stop.Store(true)
			if !l.bound.Load() && l.state.CompareAndSwap(loopReceiving, loopEnded) {
				l.s.cfg.Telemetry.Count(countDrained)
				return nil
			}
		case <-l.entry:
			if l.settled() && l.state.CompareAndSwap(loopReceiving, loopEnded) {
				return nil
			}
		case <-idle.C:
			left := timeout - l.s.cfg.Now().Sub(l.opened) + time.Duration(l.heard.Load())
			if left > 0 {
				idle.Reset(left)
				break
			}
			if l.state.CompareAndSwap(loopReceiving, loopEnded) {
				l.s.cfg.Telemetry.Count(countIdle)
				return nil
			}
			idle.Reset(timeout) // a message is being worked on
		}
	}
}

func (l *loop) run() {
	defer l.s.leave()
	l.done <- l.serve()
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
			// The handler has returned: nothing can be sent any more.
			if l.settled() {
				l.x.closed(now)
			} else {
				l.x.finish(meter.CauseLost, now)
			}
			return nil
		}
		if err != nil {
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
	}
}

// settled tells that the access log has told who ended an observed exchange, of
// which everything came: Envoy's own close, some time later, says no more. Where
// frames are still to come, it does.
func (l *loop) settled() bool {
	a := l.x.account.Load()
	return a != nil && a.Blames() && l.observe.Load() && l.seen.Load() >= a.Sent
}

// beginReceive tells whether to receive on. It says so to the handler first and
// asks for stop and the access log then; the handler does it the other way round,
// so that one of the two sees the other.
func (l *loop) beginReceive() bool {
	l.state.Store(loopReceiving)
	if l.stop.Load() && !l.bound.Load() || l.settled() {
		return !l.state.CompareAndSwap(loopReceiving, loopWorking)
	}
	return true
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

// panicked tells of a panic that was caught in what, in the exchange of ids.
func (s *Service) panicked(what string, p any, ids ...any) {
	s.cfg.Telemetry.Count(countPanic)
	s.cfg.Logger.Error("panic caught", append(ids, "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
}

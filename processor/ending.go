package processor

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How a stream ends that Envoy does not close: on drain where Envoy can go on
// without us, without a message for long, and once the access log has told the
// end of an exchange. Each may happen while the handler waits for a message.

// statusWriter is what a gRPC server's stream can do beside what its interface
// shows: end, with a receive under way, which then returns. With the interface
// alone only the handler's return ends a stream, so that it could not receive
// itself: one goroutine more a stream, and the memory of its stack.
type statusWriter interface {
	WriteStatus(s *status.Status) error
}

func statusWriterOf(ctx context.Context) (statusWriter, bool) {
	w, ok := grpc.ServerTransportStreamFromContext(ctx).(statusWriter)
	return w, ok
}

// endReceive ends the receive under way, if there is one, and tells whether it
// did: the stream then ends with OK.
func (l *loop) endReceive() bool {
	if !l.state.CompareAndSwap(loopReceiving, loopEnded) {
		return false
	}
	// It fails where Envoy has ended the stream, which is as well.
	_ = l.transport.WriteStatus(status.New(codes.OK, ""))
	return true
}

// beginReceive tells whether to receive on. It says so to the others first and
// asks for stop and the access log then; the others do it the other way round,
// so that one of the two sees the other.
func (l *loop) beginReceive() bool {
	l.state.Store(loopReceiving)
	if l.stop.Load() && !l.bound.Load() || l.settled() {
		return !l.state.CompareAndSwap(loopReceiving, loopWorking)
	}
	return true
}

// drain has the stream end once Envoy can go on without us.
func (l *loop) drain() {
	l.stop.Store(true)
	if !l.bound.Load() && l.endReceive() {
		l.s.cfg.Telemetry.Count(countDrained)
	}
}

// endSettled ends the stream if the access log has told all that is to come.
func (l *loop) endSettled() {
	if l.settled() {
		l.endReceive()
	}
}

// settled tells that the access log has told who ended an observed exchange, of
// which everything came: Envoy's own close, some time later, says no more. Where
// frames are still to come, it does.
func (l *loop) settled() bool {
	a := l.x.account.Load()
	return a != nil && a.Blames() && l.observe.Load() && l.seen.Load() >= a.Sent
}

// startIdle begins to watch for IdleTimeout without a message.
func (l *loop) startIdle() {
	// Not started before the field is set, which its function reads.
	l.idle = time.AfterFunc(math.MaxInt64, l.endIdle)
	l.idle.Reset(l.x.cfg.IdleTimeout)
}

func (l *loop) stopIdle() {
	l.state.Store(loopEnded)
	l.idle.Stop()
}

// endIdle ends the stream if the last message was long ago, and looks again
// later if not.
func (l *loop) endIdle() {
	timeout := l.x.cfg.IdleTimeout
	left := timeout - l.s.cfg.Now().Sub(l.opened) + time.Duration(l.heard.Load())
	switch {
	case l.state.Load() == loopEnded:
	case left > 0:
		l.idle.Reset(left)
	case l.endReceive():
		l.s.cfg.Telemetry.Count(countIdle)
	default:
		l.idle.Reset(timeout) // a message is being worked on
	}
}

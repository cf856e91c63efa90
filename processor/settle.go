package processor

import (
	"time"

	"google.golang.org/grpc"

	"github.com/inferspan/inferspan/processor/accesslog"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// How an exchange ended can't be told from ext_proc: a client that hangs up and
// a server that breaks off close the stream alike. Envoy's access log tells.

// logs serves one stream of access-log entries, until Envoy or Drain ends it.
func (s *Service) logs(ss grpc.ServerStream) error {
	stream := wire.NewLogStream(ss)
	gone := make(chan struct{})
	// Only the handler's return ends a receive under way.
	go func() {
		defer close(gone)
		s.takeEntries(stream)
	}()
	select {
	case <-gone:
	case <-s.over:
	}
	return stream.Close()
}

// takeEntries joins what comes. A panic in it ends the stream: Envoy opens
// another.
func (s *Service) takeEntries(stream *wire.LogStream) {
	defer s.caught("access log")
	var entries []wire.LogEntry
	for {
		var err error
		entries, err = stream.Recv(entries[:0])
		if err != nil {
			return
		}
		for i := range entries {
			s.join.Add(&entries[i])
		}
		clear(entries)
	}
}

// unmatched counts an entry that settled nothing.
func (s *Service) unmatched(reason string) {
	defer s.caught("telemetry")
	s.cfg.Telemetry.Unmatched(reason)
}

// unseen counts an exchange that passed without us.
func (s *Service) unseen() {
	defer s.caught("telemetry")
	s.cfg.Telemetry.Unseen()
}

// enter has the exchange's access-log entry find it, by the names that the
// request came with.
func (x *exchange) enter() {
	if x.joined == nil {
		x.joined = x.s.join.Open(x.start.RequestID, x.envoyStart, x.settled)
	}
}

// settled takes an entry that comes before the end. It runs on any goroutine.
func (x *exchange) settled(a *accesslog.Account) {
	x.account.Store(a)
	x.wake()
}

// settle hands out the record of an exchange of which a tells the end, or of
// which nobody does. Only what finish left to it is read here: it may run on
// another goroutine.
func (x *exchange) settle(c meter.Cause, end time.Duration, a *accesslog.Account) {
	if a != nil {
		if c == meter.CauseAborted {
			c = a.Cause(x.response.bytes)
		}
		end = x.trueEnd(end, a)
		x.told(a)
	}
	r := x.record(c, end)
	x.guard("usage", func() { x.learnUsage(r) })
	x.tellRouter(r)
	x.guard("telemetry", func() { x.s.cfg.Telemetry.End(r) })
	if x.s.cfg.Journal != nil {
		x.guard("journal", func() { x.s.cfg.Journal.Add(r) })
	}
	if x.recording != nil {
		x.endRecording(c, r)
	}
}

// trueEnd is Envoy's own end, but not before what came here last.
func (x *exchange) trueEnd(end time.Duration, a *accesslog.Account) time.Duration {
	if !a.Duration.OK {
		return end
	}
	return max(a.Duration.V.Truncate(time.Microsecond), x.at(x.last))
}

// told puts what else the entry says on the record.
func (x *exchange) told(a *accesslog.Account) {
	if a.Attempts > 0 {
		x.route.Attempts = a.Attempts
	}
	if x.broken {
		return
	}
	x.broken = !x.guard("meter", func() {
		x.meter.Routed(x.route)
		x.meter.Delivered(meter.Some(a.Sent), a.Drain)
	})
}

package processor

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/inferspan/inferspan/processor/wire"
)

// An exchange goes to its end by the settings that it began with.
func TestApply(t *testing.T) {
	s, tel := newTestService()
	s.cfg.AssumeRequest = wire.ModeBuffered
	begin := func() (*exchange, *replies) {
		out := &replies{}
		x := newExchange(s, out, caller{})
		deliver(t, x, epoch, message{phase: "request_headers", headers: chatHead()})
		return x, out
	}
	named := func(x *exchange, out *replies) bool {
		deliver(t, x, epoch, message{phase: "request_body", body: `{"model":"alias"}`, end: true})
		x.closed(epoch)
		last := out.sent[len(out.sent)-1]
		return slices.ContainsFunc(last.Set, func(h wire.Header) bool { return h.Name == poolHeader })
	}
	before, beforeOut := begin()
	c := s.cfg
	c.PoolHeader, c.HoldLimit, c.Telemetry, c.Logger = true, 0, nil, slog.New(slog.DiscardHandler)
	s.Apply(c)
	after, afterOut := begin()
	if named(before, beforeOut) {
		t.Error("an exchange under way took the new settings")
	}
	if !named(after, afterOut) {
		t.Error("an exchange that began later has the old settings")
	}
	if got := s.settings(); got.HoldLimit != defaultHoldLimit || got.Telemetry == nil || got.Logger != s.cfg.Logger {
		t.Errorf("the settings are %+v", got)
	}
	s.Drain(t.Context()) // none waits for the access log any more
	if n := len(tel.recorded()); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

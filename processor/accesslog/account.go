package accesslog

import (
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// Account is what an entry says of its exchange's end, without the names that it
// was joined by.
type Account struct {
	// Duration counts from Envoy's start, which is request.time.
	Duration meter.Opt[time.Duration]
	// Drain is how long the client took for what the server had sent.
	Drain meter.Opt[time.Duration]
	// Sent is how many bytes of the body went to the client.
	Sent     int64
	Attempts int // 0: not known
	Status   int // that the client got; 0: none

	flags    wire.Flags
	complete bool
}

func account(e *wire.LogEntry) Account {
	a := Account{
		Attempts: e.Attempts, Status: e.Status, flags: e.Flags, complete: e.Complete,
		Duration: meter.Opt[time.Duration]{V: e.Duration, OK: e.HasDuration},
		Drain:    meter.Opt[time.Duration]{V: e.Drain, OK: e.HasDrain},
	}
	// Clamped: no body has 2^62 bytes, and a lie must not become negative.
	a.Sent = int64(min(e.Bytes, 1<<62))
	return a
}

// Blames tells whether the entry says whose doing the end was.
func (a *Account) Blames() bool {
	return a.flags&(wire.FlagClient|wire.FlagUpstream|wire.FlagTimeout) != 0
}

// Cause is why an exchange ended of which seen bytes of the response's body had
// come, and not its end. Envoy's timeouts reset the server's side, and a server
// that breaks off ends the client's: the first that applies is the root.
func (a *Account) Cause(seen int64) meter.Cause {
	switch {
	case a.flags&wire.FlagTimeout != 0:
		return meter.CauseTimeout
	case a.flags&wire.FlagUpstream != 0:
		return meter.CauseUpstream
	case a.flags&wire.FlagClient != 0:
		return meter.CauseClient
	case a.flags == 0 && a.Sent > seen:
		return meter.CauseLost
	case a.complete && a.Sent == seen:
		// All of it came but the word that it was all.
		return meter.CauseEnd
	default:
		return meter.CauseAborted
	}
}

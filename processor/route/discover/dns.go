package discover

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The types of records that a DNS source asks for.
const (
	RecordA    = "A"    // IPv4 addresses
	RecordAAAA = "AAAA" // IPv6 addresses
	RecordSRV  = "SRV"  // names with ports and weights
)

const (
	// lookupTimeout bounds one lookup, all its questions together.
	lookupTimeout = 30 * time.Second
	// maxRetry is the longest wait after a lookup that failed; DNS.MinInterval
	// is the first, and each is twice the one before.
	maxRetry = 30 * time.Second
)

// DNS is a name whose records are a pool's endpoints.
type DNS struct {
	// Name is completed by the search list of resolv.conf, unless it ends in a dot.
	Name string
	// Record is the type of the records. Of SRV records those of the lowest
	// priority are used, with their weights; of their names the IPv4
	// addresses, or where there are none the IPv6 addresses, so that a server
	// that has both is one endpoint.
	Record string
	// Port is the port at each address; SRV records say theirs.
	Port int
	// Server is the ip:port of the server to ask; empty: those of resolv.conf.
	Server string
	// MinInterval and MaxInterval bound the time between two lookups, which is
	// else the least TTL of the records.
	MinInterval, MaxInterval time.Duration
	// KeepAbsent is how long what was found stays where the name has no records
	// any more, KeepFailed how long where no server tells.
	KeepAbsent, KeepFailed time.Duration
}

// String implements Source.
func (d DNS) String() string {
	s := "dns " + d.Record + " " + d.Name
	if d.Record != RecordSRV {
		s += fmt.Sprintf(" port %d", d.Port)
	}
	if d.Server != "" {
		s += " at " + d.Server
	}
	return s
}

// Run implements Source.
func (d DNS) Run(ctx context.Context, to Sink) error {
	k := keeper{DNS: d, retry: d.MinInterval}
	for {
		wait := k.look(ctx, to) // any, where ctx has ended
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// keeper says how long what was found stays.
type keeper struct {
	DNS
	has bool // something was found and stays
	// absent and failed are since when the name has no records, or no server
	// tells; zero: it has, or does.
	absent, failed time.Time
	retry          time.Duration // after the next failure
}

// look looks the name up once, and returns how long to wait before the next time.
func (k *keeper) look(ctx context.Context, to Sink) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	endpoints, ttl, err := lookup(ctx, k.DNS)
	none, isNone := errors.AsType[*absentError](err)
	now := time.Now()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return lookupTimeout
	case err == nil:
		k.absent, k.failed, k.retry = time.Time{}, time.Time{}, k.MinInterval
		k.has = true
		to.Found(endpoints)
		return min(max(ttl, k.MinInterval), k.MaxInterval)
	case isNone:
		k.retry = k.MinInterval
		left := k.keep(&k.absent, now, k.KeepAbsent, err, to)
		return min(max(none.ttl, k.MinInterval), k.MaxInterval, left)
	default:
		wait := k.retry
		k.retry = min(2*k.retry, max(maxRetry, k.MinInterval))
		if !k.has {
			// What was never known is not known to be nothing.
			to.Failed(err)
			return wait
		}
		return min(wait, k.keep(&k.failed, now, k.KeepFailed, err, to))
	}
}

// keep reports err, which is there since *since. It returns how much longer
// what was found stays, and never 0.
func (k *keeper) keep(since *time.Time, now time.Time, keep time.Duration, err error, to Sink) time.Duration {
	if since.IsZero() {
		*since = now
	}
	if left := keep - now.Sub(*since); k.has && left > 0 {
		to.Failed(err)
		return left
	}
	k.has = false
	to.Lost(err)
	return k.MaxInterval
}

// Package accesslog joins the entries of Envoy's access log to the exchanges
// that they tell the end of.
//
// An exchange is known by its span id, where Envoy has it in the metadata that
// we set, and by its request id with its start to the microsecond. The request
// id alone is the client's choice and repeats. Where entry and exchange both have
// a span id it decides; an exchange without one, whose request another replica
// decided on, is found by the rest. An entry that fits several exchanges settles
// none.
package accesslog

import (
	"encoding/hex"
	"hash/maphash"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/wire"
)

// Why an entry settled nothing.
const (
	ReasonNoExchange = "no_exchange" // none that it tells of came here in time
	ReasonAmbiguous  = "ambiguous"   // it fits several
	ReasonLate       = "late"        // its exchange had waited long enough, or found too many waiting
	ReasonFull       = "full"        // too many wait for their exchange
)

const (
	defaultWait    = 2 * time.Second
	defaultKeep    = 10 * time.Second
	defaultWaiting = 2048
	defaultKept    = 16384
	defaultOver    = 16384
)

// Config tunes a Join; every field but Unmatched has a default.
type Config struct {
	// Unmatched is told of every entry that settled nothing, and why. It must not
	// call the Join.
	Unmatched func(reason string)
	// Unseen is told besides of those that no exchange came for and that have no
	// span id of ours: Envoy let such an exchange pass without us, or only another
	// instance saw it. As Unmatched; nil: it is told to nobody.
	Unseen func()
	// Wait is how long an exchange waits for its entry; 0: 2 s.
	Wait time.Duration
	// Keep is how long an entry waits for its exchange; 0: 10 s.
	Keep time.Duration
	// MaxWaiting bounds the exchanges that wait, of which each holds its
	// meter; 0: 2048. MaxKept bounds the entries that wait, 0: 16384, and MaxOver
	// the exchanges that are remembered after they needed no entry; 0: 16384.
	MaxWaiting, MaxKept, MaxOver int
}

// Join holds what waits: exchanges for their entries and entries for their
// exchanges. It is safe for concurrent use.
type Join struct {
	c    Config
	seed maphash.Seed

	mu       sync.Mutex
	spans    map[[8]byte]*Exchange
	requests map[requestKey]*Exchange // the first of those that share the key
	waiting  map[*Exchange]struct{}
	kept     map[*keptEntry]struct{}
	keptBy   map[requestKey]*keptEntry
	keptSpan map[[8]byte]*keptEntry
	// over are exchanges that ended without waiting, oldest first from next on:
	// their entries come later, and are no others'.
	over   []*Exchange
	next   int
	closed bool
}

// requestKey is a request id, hashed so that its length costs nothing, with the
// request's start in microseconds.
type requestKey struct {
	id    uint64
	start int64
}

// keptEntry waits for its exchange.
type keptEntry struct {
	key     requestKey // zero: it is not found by one
	span    [8]byte    // zero: it is not found by one
	account Account
	timer   *time.Timer
	twice   bool // another with the same key came: they can't be told apart by it
}

// New returns a Join.
func New(c Config) *Join {
	setDefault(&c.Wait, defaultWait)
	setDefault(&c.Keep, defaultKeep)
	setDefault(&c.MaxWaiting, defaultWaiting)
	setDefault(&c.MaxKept, defaultKept)
	setDefault(&c.MaxOver, defaultOver)
	return &Join{
		c: c, seed: maphash.MakeSeed(),
		spans: make(map[[8]byte]*Exchange), requests: make(map[requestKey]*Exchange),
		waiting: make(map[*Exchange]struct{}),
		kept:    make(map[*keptEntry]struct{}), keptBy: make(map[requestKey]*keptEntry),
		keptSpan: make(map[[8]byte]*keptEntry),
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Add takes an entry. The exchange that it tells of is settled before Add
// returns, if it waits.
func (j *Join) Add(e *wire.LogEntry) {
	a := account(e)
	span, hasSpan := spanID(e.SpanID)
	key, hasKey := j.key(e.RequestID, e.Start)
	settled := func() {}
	j.mu.Lock()
	x, several := j.spans[span], false
	if x == nil && hasKey {
		x, several = j.fitting(key, hasSpan)
	}
	switch {
	case several:
		j.c.Unmatched(ReasonAmbiguous)
	case x != nil:
		settled = j.give(x, a)
	case hasKey && j.keptBy[key] != nil:
		j.keptBy[key].twice = true
		if hasSpan {
			j.keep(&keptEntry{span: span, account: a})
		} else {
			j.c.Unmatched(ReasonAmbiguous)
		}
	default:
		j.keep(&keptEntry{key: key, span: span, account: a})
	}
	j.mu.Unlock()
	settled()
}

// fitting returns the exchange that an entry with key fits: one that no other span
// id is known of. The caller holds mu.
func (j *Join) fitting(key requestKey, hasSpan bool) (x *Exchange, several bool) {
	for e := j.requests[key]; e != nil; e = e.same {
		if hasSpan && e.span != [8]byte{} {
			continue
		}
		if x != nil {
			return nil, true
		}
		x = e
	}
	return x, false
}

// spanID reads a span id of 16 hex digits; what is none is the zero one.
func spanID(text string) (id [8]byte, ok bool) {
	if len(text) != hex.EncodedLen(len(id)) {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return [8]byte{}, false
	}
	return id, id != [8]byte{}
}

func (j *Join) key(requestID string, start time.Time) (k requestKey, ok bool) {
	if requestID == "" || start.IsZero() {
		return k, false
	}
	return requestKey{id: maphash.String(j.seed, requestID), start: start.UnixMicro()}, true
}

// keep has e wait for its exchange. The caller holds mu.
func (j *Join) keep(e *keptEntry) {
	if j.closed || len(j.kept) >= j.c.MaxKept {
		j.c.Unmatched(ReasonFull)
		return
	}
	j.kept[e] = struct{}{}
	if e.key != (requestKey{}) {
		j.keptBy[e.key] = e
	}
	if e.span != [8]byte{} {
		j.keptSpan[e.span] = e
	}
	e.timer = time.AfterFunc(j.c.Keep, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if _, ok := j.kept[e]; ok {
			j.giveUp(e)
		}
	})
}

// giveUp forgets an entry for which no exchange came. The caller holds mu.
func (j *Join) giveUp(e *keptEntry) {
	j.unkeep(e)
	j.c.Unmatched(ReasonNoExchange)
	if e.key != (requestKey{}) && e.span == [8]byte{} && j.c.Unseen != nil {
		j.c.Unseen()
	}
}

// unkeep forgets e. The caller holds mu.
func (j *Join) unkeep(e *keptEntry) {
	e.timer.Stop()
	delete(j.kept, e)
	if e.key != (requestKey{}) {
		delete(j.keptBy, e.key)
	}
	if j.keptSpan[e.span] == e {
		delete(j.keptSpan, e.span)
	}
}

// Close hands out every exchange that waits, as if its time were over, and has
// none wait from now on. Entries that wait are counted.
func (j *Join) Close() {
	j.mu.Lock()
	j.closed = true
	out := make([]func(), 0, len(j.waiting))
	for x := range j.waiting {
		out = append(out, j.expire(x))
	}
	for e := range j.kept {
		j.giveUp(e)
	}
	j.mu.Unlock()
	for _, f := range out {
		f()
	}
}

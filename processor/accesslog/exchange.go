package accesslog

import "time"

// Exchange is one exchange's place in a Join. All its methods may be called on a
// nil Exchange, which never gets an entry.
type Exchange struct {
	j    *Join
	live func(*Account) // told of an entry that comes before the end

	// The rest is guarded by j.mu.

	key    requestKey
	hasKey bool
	span   [8]byte
	same   *Exchange // the next with the same key
	slot   int       // in j.over, + 1; 0: it is not there

	account *Account
	settle  func(*Account) // it waits; nil: it does not
	timer   *time.Timer
	late    bool // it has waited in vain, or found too many waiting
	gone    bool // no entry finds it any more
}

// Open enters an exchange by its request id and Envoy's start, of which either
// may be missing. When its entry comes before its end, live is told: on another
// goroutine or on this one, and live must not call the Exchange.
func (j *Join) Open(requestID string, start time.Time, live func(*Account)) *Exchange {
	x := &Exchange{j: j, live: live}
	x.key, x.hasKey = j.key(requestID, start)
	if !x.hasKey {
		return x
	}
	j.mu.Lock()
	x.same = j.requests[x.key]
	j.requests[x.key] = x
	kept := j.keptBy[x.key]
	var told func()
	switch {
	case kept == nil:
	case (kept.twice || x.same != nil) && kept.span != [8]byte{}:
		// Its span will tell.
	case kept.twice || x.same != nil:
		j.unkeep(kept)
		j.c.Unmatched(ReasonAmbiguous)
	default:
		j.unkeep(kept)
		told = j.give(x, kept.account)
	}
	j.mu.Unlock()
	if told != nil {
		told()
	}
	return x
}

// Identify enters the span id under which Envoy knows the exchange.
func (x *Exchange) Identify(span [8]byte) {
	if x == nil || span == [8]byte{} {
		return
	}
	j := x.j
	j.mu.Lock()
	told := func() {}
	if !x.gone && x.span == [8]byte{} {
		x.span = span
		j.spans[span] = x
		if kept := j.keptSpan[span]; kept != nil {
			j.unkeep(kept)
			told = j.give(x, kept.account)
		}
	}
	j.mu.Unlock()
	told()
}

// Leave says that another stream accounts for the exchange: no entry finds x any
// more.
func (x *Exchange) Leave() {
	if x == nil {
		return
	}
	x.j.mu.Lock()
	defer x.j.mu.Unlock()
	x.live = nil
	if !x.gone {
		x.j.forget(x)
	}
}

// End says that the exchange needs no entry, and returns what had come, nil for
// nothing. The entry that comes later is not counted as anyone else's.
func (x *Exchange) End() *Account {
	if x == nil {
		return nil
	}
	x.j.mu.Lock()
	defer x.j.mu.Unlock()
	x.live = nil
	x.j.remember(x)
	return x.account
}

// Wait has settle called once with the exchange's entry, or with nil when it did
// not come in time: at once where that is clear already, else on another
// goroutine.
func (x *Exchange) Wait(settle func(*Account)) {
	if x == nil {
		settle(nil)
		return
	}
	j := x.j
	j.mu.Lock()
	x.live = nil
	full := len(j.waiting) >= j.c.MaxWaiting
	if x.gone || !x.known() || j.closed || full {
		a := x.account
		x.late = full
		j.remember(x)
		j.mu.Unlock()
		settle(a)
		return
	}
	x.settle = settle
	j.waiting[x] = struct{}{}
	x.timer = time.AfterFunc(j.c.Wait, func() {
		j.mu.Lock()
		expired := j.expire(x)
		j.mu.Unlock()
		expired()
	})
	j.mu.Unlock()
}

// known tells whether an entry can find x. The caller holds mu.
func (x *Exchange) known() bool { return !x.gone && (x.hasKey || x.span != [8]byte{}) }

// expire ends x's waiting; what it returns is to be called without mu, which the
// caller holds.
func (j *Join) expire(x *Exchange) func() {
	settle := x.settle
	if settle == nil {
		return func() {} // its entry came at the same moment
	}
	j.rest(x)
	j.remember(x)
	x.late = true
	return func() { settle(nil) }
}

// rest ends x's waiting. The caller holds mu.
func (j *Join) rest(x *Exchange) {
	x.timer.Stop()
	x.settle = nil
	delete(j.waiting, x)
}

// give settles x by a. What it returns is to be called without mu, which the
// caller holds.
func (j *Join) give(x *Exchange, a Account) func() {
	if x.late {
		j.c.Unmatched(ReasonLate)
	}
	j.forget(x)
	x.account = &a
	if x.settle != nil {
		settle := x.settle
		j.rest(x)
		return func() { settle(&a) }
	}
	if live := x.live; live != nil {
		return func() { live(&a) }
	}
	return func() {}
}

// remember keeps x, whose entry is still to come and settles nothing, in place
// of the one that it has kept longest. The caller holds mu.
func (j *Join) remember(x *Exchange) {
	if x.slot != 0 || !x.known() {
		return
	}
	if len(j.over) < j.c.MaxOver {
		j.over = append(j.over, x)
		x.slot = len(j.over)
		return
	}
	if old := j.over[j.next]; old != nil {
		old.slot = 0
		j.forget(old)
	}
	j.over[j.next] = x
	x.slot = j.next + 1
	j.next = (j.next + 1) % len(j.over)
}

// forget takes x out, so that no entry finds it. The caller holds mu.
func (j *Join) forget(x *Exchange) {
	x.gone = true
	if x.slot != 0 {
		j.over[x.slot-1] = nil
		x.slot = 0
	}
	if x.span != [8]byte{} && j.spans[x.span] == x {
		delete(j.spans, x.span)
	}
	if !x.hasKey {
		return
	}
	first := j.requests[x.key]
	if first == x {
		if x.same == nil {
			delete(j.requests, x.key)
		} else {
			j.requests[x.key] = x.same
		}
		x.same = nil
		return
	}
	for e := first; e != nil; e = e.same {
		if e.same == x {
			e.same, x.same = x.same, nil
			return
		}
	}
}

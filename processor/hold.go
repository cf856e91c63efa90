package processor

import "sync/atomic"

// heldTotal counts the bytes that all streams hold together of requests in
// FULL_DUPLEX_STREAMED that wait for their decision. It is safe for concurrent
// use. Invariant: 0 <= bytes, and 0 when no stream is left.
type heldTotal struct{ bytes atomic.Int64 }

// take adds n bytes, unless the total would be beyond limit then, and tells
// whether it did.
func (h *heldTotal) take(n, limit int64) bool {
	for {
		held := h.bytes.Load()
		if held+n > limit {
			return false
		}
		if h.bytes.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

func (h *heldTotal) give(n int64) { h.bytes.Add(-n) }

// hold counts what is held of the request and tells whether there is room for it,
// beside what other streams hold.
func (x *exchange) hold() bool {
	r := &x.request
	more := int64(len(r.held)) - r.counted
	if !x.s.held.take(more, x.cfg.HoldTotal) {
		return false
	}
	r.counted += more
	return true
}

// dropHeld lets go of what is held of the request, and gives its room to others.
// It is called when it was sent and at the stream's end, which may come long
// after that of the exchange.
func (x *exchange) dropHeld() {
	r := &x.request
	x.s.held.give(r.counted)
	r.held, r.counted = nil, 0
}

package recording

import (
	"encoding/hex"
	"iter"
	"strings"
	"time"
	"unsafe"

	"github.com/inferspan/inferspan/processor/coding"
	"github.com/inferspan/inferspan/processor/meter"
)

// Take is one exchange that is being recorded. It belongs to the exchange's
// goroutine, blocks nobody, and keeps no reference to what it is given. A nil
// Take is none: it must not be used.
type Take struct {
	recorder *Recorder
	// done: nothing more of it is taken.
	done bool
	// held is what is counted of its memory.
	held int

	request  Request
	head     *Head
	body     []byte
	pieces   []pieceEnd
	cause    meter.Cause
	end      time.Duration
	start    time.Time
	traceID  [16]byte
	mistaken bool // a part came where the form has no place for it
}

// pieceEnd is where a piece ends in the body.
type pieceEnd struct {
	at  time.Duration
	end int
}

const pieceBytes = int(unsafe.Sizeof(pieceEnd{}))

// Request takes the request's head; path has no query string.
func (t *Take) Request(method, path string, headers iter.Seq2[string, string]) {
	t.request.Method, t.request.Path = strings.Clone(method), strings.Clone(path)
	t.request.Headers = keepHeaders(headers)
}

// RequestBody takes a part of the request's body.
func (t *Take) RequestBody(part []byte) {
	if t.fits(len(part)) {
		before := cap(t.request.Body)
		t.request.Body = append(t.request.Body, part...)
		t.hold(cap(t.request.Body) - before)
	}
}

// Response takes the response's head.
func (t *Take) Response(at time.Duration, status int, headers iter.Seq2[string, string]) {
	t.mistaken = t.mistaken || status < minStatus || status > maxStatus
	t.head = &Head{At: at, Status: status, Headers: keepHeaders(headers)}
}

// Frame takes a piece of the response's body.
func (t *Take) Frame(at time.Duration, part []byte) {
	if !t.fits(len(part) + pieceBytes) {
		return
	}
	t.mistaken = t.mistaken || t.head == nil
	body, pieces := cap(t.body), cap(t.pieces)
	t.body = append(t.body, part...)
	t.pieces = append(t.pieces, pieceEnd{at, len(t.body)})
	t.hold(cap(t.body) - body + (cap(t.pieces)-pieces)*pieceBytes)
}

// End has the exchange written, which is over. r is only read.
func (t *Take) End(c meter.Cause, r *meter.Record) {
	if t.done {
		return
	}
	if t.mistaken || c == meter.CauseRejected || t.request.Method == "" || t.request.Path == "" {
		// No model server had a part in it, or we did not see enough.
		t.Drop()
		return
	}
	t.done = true
	t.cause, t.end, t.start, t.traceID = c, r.End, r.Start, r.Trace.TraceID
	select {
	case t.recorder.waiting <- t:
	default:
		t.recorder.config.Count(CountQueue)
		t.release()
	}
}

// Drop gives the exchange up. It may be called again.
func (t *Take) Drop() {
	if !t.done {
		t.done = true
		t.release()
	}
}

// fits tells whether n bytes more may be taken.
func (t *Take) fits(n int) bool {
	if t.done {
		return false
	}
	if len(t.request.Body)+len(t.body)+len(t.pieces)*pieceBytes+n > maxTake {
		t.recorder.config.Count(CountTooLarge)
		t.Drop()
		return false
	}
	return true
}

func (t *Take) hold(n int) {
	t.held += n
	if !t.recorder.hold(n) {
		t.recorder.config.Count(CountMemory)
		t.Drop()
	}
}

// release lets the memory go.
func (t *Take) release() {
	t.recorder.hold(-t.held)
	t.held, t.body, t.pieces, t.request.Body = 0, nil, nil, nil
}

// recording returns what was taken.
func (t *Take) recording() *Recording {
	rec := &Recording{
		// The trace id finds the file of a span, and keeps names apart.
		Name:    t.start.UTC().Format(nameLayout) + "-" + hex.EncodeToString(t.traceID[:]),
		Request: t.request, Head: t.head, End: endOf(t.cause), EndAt: t.end,
	}
	if t.head != nil {
		rec.Server = t.head.Headers.Get("server")
	}
	if t.head != nil {
		rec.EndAt = max(rec.EndAt, t.head.At)
	}
	from := 0
	for _, p := range t.pieces {
		// Envoy may have a shorter account of it than what came here took.
		rec.EndAt = max(rec.EndAt, p.at)
		rec.Pieces = append(rec.Pieces, Piece{At: p.at, Data: t.body[from:p.end:p.end]})
		from = p.end
	}
	return rec
}

// endOf is the end that replays to cause c.
func endOf(c meter.Cause) End {
	switch c {
	case meter.CauseEnd:
		return EndEOF
	case meter.CauseClient:
		return EndClientClosed
	case meter.CauseUpstream:
		return EndReset
	case meter.CauseTimeout:
		return EndTimeout
	case meter.CauseLost:
		return EndLost
	}
	return EndAborted
}

// keepHeaders copies the headers that a recording may have, each once: of
// several content codings the list, of others the last.
func keepHeaders(headers iter.Seq2[string, string]) Headers {
	out := Headers{}
	for name, value := range headers {
		name = strings.ToLower(name)
		if !kept[name] {
			continue
		}
		value = strings.Clone(value)
		if first := out.find(name); first != nil {
			if name == "content-encoding" {
				value = first.Value + "," + value
			}
			first.Value = value
			continue
		}
		out = append(out, Header{name, value})
	}
	return out
}

func (h Headers) find(name string) *Header {
	for i := range h {
		if h[i].Name == name {
			return &h[i]
		}
	}
	return nil
}

// coding returns the response's content coding, "" for none.
func (h *Head) coding() string {
	if h == nil || coding.Identity(h.Headers.Get("content-encoding")) {
		return ""
	}
	return h.Headers.Get("content-encoding")
}

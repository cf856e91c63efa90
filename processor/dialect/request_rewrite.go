package dialect

import "encoding/json"

// Rewriter replaces the top-level model name of a request body while its bytes
// pass, cut anywhere. Every byte but the values of the top-level members
// "model" stays as it came. Replaced are names up to [MaxModel] bytes and null,
// which a server takes for a name too; of several members all, so that the
// server's choice among them does not matter.
//
// It holds back at most one such value: a few KiB. For any cutting the output
// is the same, that of [RewriteModel]. It is not safe for concurrent use.
type Rewriter struct {
	scanner *Scanner
	name    []byte // as JSON
	held    []byte // the body's last bytes so far, not yet given out
}

// NewRewriter returns a Rewriter that puts name in place, for the body of a
// request of dialect d.
func NewRewriter(d Dialect, name string) *Rewriter {
	quoted, _ := json.Marshal(name) //nolint:errchkjson // a string always has a JSON form
	return &Rewriter{scanner: NewScanner(d), name: quoted}
}

// Scanner returns the Scanner that the Rewriter feeds, so that a body need not
// be scanned twice. It tells what was asked before it was rewritten.
func (w *Rewriter) Scanner() *Scanner { return w.scanner }

// Write takes the next bytes of the body and appends to dst what can be given
// out.
func (w *Rewriter) Write(dst, piece []byte) []byte {
	s := w.scanner
	start := s.offset
	s.Write(piece)
	at := start - int64(len(w.held)) // the offset of what is to be given out next
	for _, v := range s.replaceable {
		dst = w.give(dst, piece, start, bodySpan{at, v.start})
		dst = append(dst, w.name...)
		at = v.end
	}
	end := s.offset
	if s.open >= 0 {
		end = s.open
	}
	dst = w.give(dst, piece, start, bodySpan{at, end})
	if s.open < 0 {
		w.held = w.held[:0]
		return dst
	}
	if end >= start {
		w.held = append(w.held[:0], piece[end-start:]...)
	} else {
		w.held = append(w.held, piece...)
	}
	return dst
}

// give appends a part of the body, which lies in what is held, in piece, which
// begins at start, or in both.
func (w *Rewriter) give(dst, piece []byte, start int64, part bodySpan) []byte {
	if part.start < start {
		held := w.held[int64(len(w.held))-(start-part.start):]
		if n := part.end - part.start; n < int64(len(held)) {
			return append(dst, held[:n]...)
		}
		dst = append(dst, held...)
		part.start = start
	}
	return append(dst, piece[part.start-start:part.end-start]...)
}

// Close ends the body and appends to dst what was held back: the beginning of
// a value that never ended.
func (w *Rewriter) Close(dst []byte) []byte {
	w.scanner.Close()
	dst = append(dst, w.held...)
	w.held = nil
	return dst
}

// RewriteModel returns a whole body with its model name replaced, or body
// itself where there is none to replace. See [Rewriter] for what is replaced.
func RewriteModel(body []byte, name string) []byte {
	w := NewRewriter(Unknown, name)
	out := w.Write(make([]byte, 0, len(body)+len(w.name)), body)
	if len(w.scanner.replaceable) == 0 {
		return body
	}
	return w.Close(out)
}

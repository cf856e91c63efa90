package dialect

import (
	"encoding/json"
	"slices"
)

// Rewriter changes a request body while its bytes pass, cut anywhere: it
// replaces the top-level model name, or has the body ask for usage, or both.
// Every other byte stays as it came.
//
// Of a model, names up to [MaxModel] bytes are replaced and null, which a server
// takes for a name too; of several members "model" all, so that the server's
// choice among them does not matter. Usage is asked for in the last top-level
// "stream_options", where there is one, else by a new one at the end.
//
// It holds back at most one model value, a few KiB, and where usage is asked for
// and "stream_options" stands early what follows it, a few hundred KiB. For any
// cutting the output is the same, that of [Rewrite]. It is not safe for
// concurrent use.
type Rewriter struct {
	scanner *Scanner
	name    []byte     // as JSON; nil: the model stays
	ask     *asker     // nil: nothing is asked
	edits   []bodyEdit // of what is held or just came, in order
	held    []byte     // the body's last bytes so far, not yet given out
	changed bool
}

// bodyEdit puts with in the place of a part of the body.
type bodyEdit struct {
	bodySpan
	with []byte
}

// Edit says what is to change in a request body.
type Edit struct {
	// Model is the name that the model gets; "": it keeps its own.
	Model string
	// Ask has the body ask for usage, where that can be hidden again.
	Ask bool
}

// NewEditor returns a Rewriter that does what e says, for the body of a request
// of dialect d.
func NewEditor(d Dialect, e Edit) *Rewriter {
	w := &Rewriter{scanner: NewScanner(d, "")}
	if e.Model != "" {
		w.name, _ = json.Marshal(e.Model) //nolint:errchkjson // a string always has a JSON form
	}
	if e.Ask && (d == Chat || d == Completions) {
		w.ask = new(asker)
	}
	return w
}

// NewRewriter returns a Rewriter that puts name in place, for the body of a
// request of dialect d.
func NewRewriter(d Dialect, name string) *Rewriter {
	return NewEditor(d, Edit{Model: name})
}

// Scanner returns the Scanner that the Rewriter feeds, so that a body need not
// be scanned twice. It tells what was asked before it was rewritten.
func (w *Rewriter) Scanner() *Scanner { return w.scanner }

// Asked returns what the body asks for that the client did not. It is known at
// the end of the body.
func (w *Rewriter) Asked() Asked {
	if w.ask == nil {
		return Asked{}
	}
	return w.ask.asked
}

// Write takes the next bytes of the body and appends to dst what can be given
// out.
func (w *Rewriter) Write(dst, piece []byte) []byte {
	if w.ask == nil {
		return w.write(dst, piece)
	}
	for len(piece) > 0 {
		n := min(len(piece), askStride-int(w.scanner.offset%askStride))
		if w.ask.settled {
			n = len(piece)
		}
		dst = w.write(dst, piece[:n])
		piece = piece[n:]
	}
	return dst
}

// write is Write of a piece within which nothing is to be decided early.
func (w *Rewriter) write(dst, piece []byte) []byte {
	s := w.scanner
	s.Write(piece)
	if w.name != nil {
		for _, span := range s.replaceable {
			w.edits = append(w.edits, bodyEdit{span, w.name})
		}
	}
	if len(w.held) > 0 {
		w.held = append(w.held, piece...)
		piece = w.held
	}
	dst, kept := w.release(dst, piece, false)
	if len(w.held) == 0 || len(kept) < len(w.held) {
		// Else all of it is still held, and not copied for each piece.
		w.held = append(w.held[:0], kept...)
	}
	return dst
}

// release gives out the end of the body so far, b, as far as it is sure what
// becomes of it, and returns the rest. over says that the body has ended.
func (w *Rewriter) release(dst, b []byte, over bool) (out, kept []byte) {
	s := w.scanner
	start, end := s.offset-int64(len(b)), s.offset
	if w.ask != nil {
		if edits := w.ask.decide(s, b, start, over); len(edits) > 0 {
			w.edits = append(w.edits, edits...)
			slices.SortStableFunc(w.edits, func(a, b bodyEdit) int { return int(a.start - b.start) })
		}
		if from := w.ask.from(s); from >= 0 {
			end = min(end, from)
		}
	}
	if s.open >= 0 {
		end = min(end, s.open)
	}
	at := start
	done := 0
	for _, e := range w.edits {
		if e.end > end {
			break
		}
		dst = append(dst, b[at-start:e.start-start]...)
		dst = append(dst, e.with...)
		at = e.end
		w.changed = true
		done++
	}
	w.edits = slices.Delete(w.edits, 0, done)
	return append(dst, b[at-start:end-start]...), b[end-start:]
}

// Close ends the body and appends to dst what was held back.
func (w *Rewriter) Close(dst []byte) []byte {
	w.scanner.Close()
	dst, _ = w.release(dst, w.held, true)
	w.held = nil
	return dst
}

// Rewrite returns a whole body of a request of dialect d with e done, or body
// itself where there is nothing to do, and what it asks for now.
func Rewrite(d Dialect, body []byte, e Edit) ([]byte, Asked) {
	w := NewEditor(d, e)
	if w.ask != nil {
		w.ask.patient = true
	}
	out := w.Write(make([]byte, 0, len(body)+len(w.name)+len(usageMember)), body)
	out = w.Close(out)
	if !w.changed {
		return body, Asked{}
	}
	return out, w.Asked()
}

// RewriteModel returns a whole body with its model name replaced, or body
// itself where there is none to replace. See [Rewriter] for what is replaced.
func RewriteModel(body []byte, name string) []byte {
	body, _ = Rewrite(Unknown, body, Edit{Model: name})
	return body
}

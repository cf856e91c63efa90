package dialect

import (
	"encoding/json"
	"slices"
)

// Rewriter changes a request body while its bytes pass, cut anywhere: it
// gives the top-level model another name, or has the body ask for usage, or both.
// Every other byte stays as it came.
//
// Of a model every string that is another name is replaced, and null, which a
// server takes for a name too; of several members "model" all, so that the server's
// choice among them does not matter: whichever it takes is the one name, or none
// that a server takes. Usage is asked for in the last top-level "stream_options",
// where there is one, else by a new one at the end.
//
// It holds back at most one model value, a few KiB, and where usage is asked for
// and "stream_options" stands early what follows it, a few hundred KiB. For any
// cutting the output is the same, that of [Rewrite]. It is not safe for
// concurrent use.
type Rewriter struct {
	scanner *Scanner
	name    []byte     // as JSON; nil: the model stays
	model   string     // name, plain
	ask     *asker     // nil: nothing is asked
	edits   []bodyEdit // of what is held or just came, in order
	held    []byte     // the body's last bytes so far, not yet given out
	out     []byte     // of Pass, reused
	changed bool
	// dropping: a name beyond MaxModel has been replaced, and the rest of it is
	// left out as it comes.
	dropping bool
}

// bodyEdit puts with in the place of a part of the body.
type bodyEdit struct {
	bodySpan
	with []byte
}

// Edit says what is to change in a request body.
type Edit struct {
	// Model is the name that the model gets, where SetModel is set.
	Model    string
	SetModel bool
	// Ask has the body ask for usage, where that can be hidden again.
	Ask bool
}

// NewEditor returns a Rewriter that does what e says, for the body of a request
// of dialect d.
func NewEditor(d Dialect, e Edit) *Rewriter {
	return newRewriter(NewScanner(d, ""), e)
}

func newRewriter(s *Scanner, e Edit) *Rewriter {
	w := &Rewriter{scanner: s}
	s.models.all = true
	if e.SetModel {
		w.model = e.Model
		w.name, _ = json.Marshal(e.Model) //nolint:errchkjson // a string always has a JSON form
	}
	if d := s.request.Dialect; e.Ask && (d == Chat || d == Completions) {
		w.ask = new(asker)
	}
	return w
}

// Edit returns a Rewriter for the rest of a body of which s has read the beginning,
// begun, and what becomes of that, as Pass would: begun itself where nothing in it
// changes. From then on s is the Rewriter's.
func (s *Scanner) Edit(begun []byte, e Edit) (*Rewriter, []byte) {
	if e.Ask || s.models.lost {
		// Asking looks at the body at fixed places, from its beginning on.
		w := NewEditor(s.request.Dialect, e)
		out := w.Write(nil, begun)
		return w, out
	}
	w := newRewriter(s, e)
	out := w.pass(begun)
	return w, out
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
	for len(piece) > 0 {
		n := len(piece)
		if w.ask != nil && !w.ask.settled {
			// Within it nothing is to be decided early.
			n = min(n, askStride-int(w.scanner.offset%askStride))
		}
		w.scanner.Write(piece[:n])
		dst = w.write(dst, w.take(piece[:n]))
		piece = piece[n:]
	}
	return dst
}

// Pass is Write for one who can use piece itself: it returns piece where nothing
// in it changes or is held back, else what Write gives. It is valid until the next
// call.
func (w *Rewriter) Pass(piece []byte) []byte {
	if w.ask != nil {
		w.out = w.Write(w.out[:0], piece)
		return w.out
	}
	w.scanner.Write(piece)
	return w.pass(piece)
}

// pass is Pass of a piece that the scanner has read.
func (w *Rewriter) pass(piece []byte) []byte {
	piece = w.take(piece)
	m := &w.scanner.models
	if len(w.held) == 0 && len(w.edits) == 0 && m.open < 0 && (m.long < 0 || w.dropping) {
		return piece
	}
	w.out = w.write(w.out[:0], piece)
	return w.out
}

// take takes the model values that ended in piece, which the scanner has read,
// and returns piece without what is to be dropped.
func (w *Rewriter) take(piece []byte) []byte {
	m := &w.scanner.models
	for _, v := range m.ended {
		switch {
		case w.name == nil:
		case w.dropping:
			piece = piece[len(piece)-int(w.scanner.offset-v.end):]
			w.dropping = false
		case !v.named || v.name != w.model:
			w.edits = append(w.edits, bodyEdit{v.bodySpan, w.name})
		}
	}
	m.ended = m.ended[:0]
	if w.dropping {
		return nil
	}
	return piece
}

// write gives out what can be of what is held and of piece behind it.
func (w *Rewriter) write(dst, piece []byte) []byte {
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
	if s.models.open >= 0 {
		end = min(end, s.models.open)
	}
	long := w.name != nil && s.models.long >= 0 && !w.dropping
	if long {
		end = min(end, s.models.long)
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
	dst = append(dst, b[at-start:end-start]...)
	if long && end == s.models.long {
		w.dropping, w.changed = true, true
		return append(dst, w.name...), nil
	}
	return dst, b[end-start:]
}

// Close ends the body and appends to dst what was held back.
func (w *Rewriter) Close(dst []byte) []byte {
	w.scanner.Close()
	dst, _ = w.release(dst, w.held, true)
	w.held, w.dropping = nil, false
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

package recording

import (
	"bytes"
	"strings"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Fill replaces the content of rec by filler of the same length: what was asked
// and answered, names of tools and their arguments, token ids, log probabilities
// and what else is not known to be harmless. What the measuring reads stays, so
// that rec replays to the record that it replayed to before: the structure, the
// length of every text, names of the API, models, ids, roles, types, finish
// reasons, counts and times.
//
// It drops the query string and all headers but those that Keep keeps. A content
// coding is taken off the response, since filler in it would have another length:
// the bytes and frames are then those of the body that it stood for. Its error
// is a coding that can't be taken off; rec is of no use then.
func Fill(rec *Recording) error {
	req := &rec.Request
	req.Path, _, _ = strings.Cut(req.Path, "?")
	req.Headers = Keep(req.Headers)
	f := filler{strict: !dialect.ForPath(req.Path).Known()}
	req.Body = bytes.Clone(req.Body)
	if boundary := dialect.FormBoundary(req.Headers.Get("content-type")); boundary != "" {
		fillForm(req.Body, boundary)
	} else {
		f.body(req.Body)
	}
	if rec.Head == nil {
		return nil
	}
	if err := rec.decode(); err != nil {
		return err
	}
	head := *rec.Head
	head.Headers = Keep(head.Headers)
	rec.Head = &head
	all := rec.join()
	if isEventStream(head.Headers.Get("content-type")) {
		f.events(all)
	} else {
		f.body(all)
	}
	return nil
}

// kept are the headers that a recording may have. None of them has a secret, or
// says who the client is.
var kept = map[string]bool{
	"accept":            true,
	"content-encoding":  true,
	"content-length":    true,
	"content-type":      true,
	"date":              true,
	"server":            true,
	"transfer-encoding": true,
	"x-request-id":      true,
}

// Keep returns those of the headers that a recording may have.
func Keep(headers Headers) Headers {
	out := Headers{}
	for _, h := range headers {
		if kept[strings.ToLower(h.Name)] {
			out = append(out, h)
		}
	}
	return out
}

// join copies the pieces into one, of which they are then parts.
func (rec *Recording) join() []byte {
	n := 0
	for _, p := range rec.Pieces {
		n += len(p.Data)
	}
	all := make([]byte, 0, n)
	pieces := make([]Piece, len(rec.Pieces))
	for i, p := range rec.Pieces {
		from := len(all)
		all = append(all, p.Data...)
		pieces[i] = Piece{At: p.At, Data: all[from:len(all):len(all)]}
	}
	rec.Pieces = pieces
	return all
}

// filler replaces the content of one exchange's bodies.
type filler struct {
	// strict: only names that are known stay, as the API is not.
	strict bool
	ids    idFiller
}

// body fills a body that is whole, as far as it came.
func (f *filler) body(b []byte) {
	switch rest := bytes.TrimLeft(bytes.TrimPrefix(b, []byte(bodyMark)), " \t\r\n"); {
	case len(rest) == 0:
	case rest[0] == '{', rest[0] == '[':
		f.json(rest)
	default:
		fillWords(rest)
	}
}

const bodyMark = "\xEF\xBB\xBF"

// fillWords replaces the letters and digits of what is not understood.
func fillWords(b []byte) {
	for i, c := range b {
		switch {
		case isLetter(c):
			b[i] = fillLetter
		case isDigit(c):
			b[i] = fillDigit
		case c >= 0x80:
			b[i] = fillOther
		}
	}
}

// What stands for a letter, a digit, and any byte beyond ASCII outside a JSON
// string, which is none of those that a reader takes there.
const (
	fillLetter = 'x'
	fillDigit  = '1'
	fillOther  = '?'
)

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isName tells a name of an API or an event from a text.
func isName(b []byte) bool {
	const longest = 64
	if len(b) == 0 || len(b) > longest {
		return false
	}
	for _, c := range b {
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return !isDigit(b[0])
}

func isEventStream(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), "text/event-stream")
}

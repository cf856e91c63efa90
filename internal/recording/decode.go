package recording

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/inferspan/inferspan/processor/coding"
)

// maxDecoded is how many bytes a body in a content coding may stand for.
const maxDecoded = 16 << 20

// decode takes the content coding off the response. What a piece stood for keeps
// the piece's time; what the coding held back to the end comes with the last.
func (rec *Recording) decode() error {
	var names []string
	var rest Headers
	for _, h := range rec.Head.Headers {
		switch strings.ToLower(h.Name) {
		case "content-encoding":
			names = append(names, h.Value)
		case "content-length":
		default:
			rest = append(rest, h)
		}
	}
	name := strings.Join(names, ",")
	if coding.Identity(name) {
		return nil
	}
	d, err := coding.New(name, coding.Limits{MaxOutput: maxDecoded})
	if err != nil {
		return fmt.Errorf("take the coding %q off a response: %w", name, err)
	}
	defer d.Close()
	var pieces []Piece
	take := func(p Piece) {
		for plain, ok := d.Next(); ok; plain, ok = d.Next() {
			pieces = append(pieces, Piece{At: p.At, Data: bytes.Clone(plain)})
		}
	}
	for _, p := range rec.Pieces {
		d.Push(p.Data)
		take(p)
	}
	d.End()
	if n := len(rec.Pieces); n > 0 {
		take(rec.Pieces[n-1])
	}
	if err := d.Err(); err != nil && rec.End == EndEOF {
		return fmt.Errorf("take the coding %q off a response: %w", name, err)
	}
	head := *rec.Head
	head.Headers = rest
	rec.Head, rec.Pieces = &head, pieces
	return nil
}

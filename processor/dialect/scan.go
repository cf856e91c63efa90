package dialect

import (
	"bytes"
	"encoding/json"
)

// maxDepth is how deep brackets may nest. Real responses stay below ten.
const maxDepth = 64

// scan reads a JSON text that is whole in memory, without allocating and
// without recursion. What is read is checked; what is skipped only has to have
// its quotes and brackets in order. So a text that was cut anywhere is never
// taken for a whole one, and one that a strict reader takes is always taken.
//
// Once bad is set, every method returns at once and reads nothing more.
type scan struct {
	b   []byte
	i   int
	bad bool
	// first: an object or array was just entered, so no comma is due.
	first bool
	// escaped: the last string has escapes.
	escaped bool
	// from and to are the last text that was shown: its first byte, and the
	// quote behind it. from == to: none was.
	from, to int
	// key's memory, where a key had to be unescaped.
	unescaped [32]byte
}

// fail gives the text up.
func (s *scan) fail() { s.bad, s.i = true, len(s.b) }

// peek passes over white space and returns the next byte, 0 at the end.
func (s *scan) peek() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c > ' ' || !isSpace(c) {
			return c
		}
		s.i++
	}
	return 0
}

// enter begins the object or array that opens with bracket, if one is next.
func (s *scan) enter(bracket byte) bool {
	if s.peek() != bracket {
		return false
	}
	s.i++
	s.first = true
	return true
}

// more tells whether the object or array that ends with bracket has another
// element, and moves to it; else it moves behind the bracket.
func (s *scan) more(bracket byte) bool {
	c := s.peek()
	first := s.first
	s.first = false
	switch {
	case c == bracket:
		s.i++
		return false
	case first && c != 0:
		return true
	case c == ',' && !first:
		s.i++
		return true
	}
	s.fail()
	return false
}

// key reads a member's name and the colon behind it. It is valid until the
// next call.
func (s *scan) key() []byte {
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	k := s.text()
	if s.i < len(s.b) && s.b[s.i] == ':' {
		s.i++
	} else if s.peek() == ':' {
		s.i++
	} else {
		s.fail()
		return nil
	}
	if s.escaped {
		return s.unescape(k)
	}
	return k
}

// unescape returns a key without its escapes; one that is longer than any of
// ours as nil, which is no key of ours.
func (s *scan) unescape(k []byte) []byte {
	t := scanText{b: s.unescaped[:0], limit: len(s.unescaped)}
	for _, c := range k {
		if t.read(c) != textGoesOn {
			return nil
		}
	}
	t.halfPair()
	if t.tooLong {
		return nil
	}
	return t.b
}

// text reads the string whose opening quote is next and returns what stands
// between its quotes, escapes as they are.
func (s *scan) text() []byte {
	b, start := s.b, s.i+1
	s.escaped = false
	for i := start; i < len(b); i++ {
		if !textByte[b[i]] {
			if b[i] == '"' {
				s.i = i + 1
				return b[start:i]
			}
			s.escaped = true
			i++
		}
	}
	s.fail()
	return nil
}

// textByte tells which bytes are just a string's, literalByte which can be a
// number's or a word's.
var textByte, literalByte = func() (text, literal [256]bool) {
	for i := range text {
		c := byte(i)
		text[i] = c != '"' && c != '\\'
		literal[i] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
	}
	return text, literal
}()

// skip passes over one value.
func (s *scan) skip() {
	switch c := s.peek(); c {
	case '"':
		s.text()
	case '{', '[':
		s.skipNested()
	default:
		s.literal()
	}
}

// literal reads a number or a word, which must not be empty.
func (s *scan) literal() []byte {
	s.peek()
	start := s.i
	for s.i < len(s.b) && literalByte[s.b[s.i]] {
		s.i++
	}
	if s.i == start {
		s.fail()
		return nil
	}
	return s.b[start:s.i]
}

// skipNested passes over the object or array that is next.
func (s *scan) skipNested() {
	var objects uint64 // bit n: the bracket at depth n is a brace
	depth := 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			s.text()
			continue
		case '{', '[':
			if depth == maxDepth {
				s.fail()
				return
			}
			objects <<= 1
			if c == '{' {
				objects |= 1
			}
			depth++
		case '}', ']':
			if (c == '}') != (objects&1 == 1) {
				s.fail()
				return
			}
			objects >>= 1
			depth--
			if depth == 0 {
				s.i++
				return
			}
		}
		s.i++
	}
	s.fail()
}

// count reads an array and returns the number of its elements; any other value
// has none.
func (s *scan) count() int {
	n := 0
	if !s.enter('[') {
		s.skip()
		return 0
	}
	for s.more(']') {
		s.skip()
		n++
	}
	return n
}

// null passes over the word null, if it is next.
func (s *scan) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.b[s.i:], []byte("null")) {
		s.i += len("null")
		return true
	}
	return false
}

// end tells whether the text was read to its end without fault.
func (s *scan) end() bool { return !s.bad && s.peek() == 0 && s.i == len(s.b) }

// Whole tells whether data is a whole JSON value, as far as a reader needs it
// to be: what was cut off anywhere inside an object, array or string is not, nor
// is a bare word that JSON does not have.
func Whole(data []byte) bool {
	s := scan{b: data}
	switch s.peek() {
	case '"', '{', '[':
		s.skip()
		return s.end()
	}
	return json.Valid(data)
}

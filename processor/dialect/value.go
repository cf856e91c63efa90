package dialect

import (
	"bytes"
	"math"
	"strconv"
)

// Text is a JSON string as it stands between its quotes, escapes and all.
type Text []byte

// Decode returns the text without its escapes, as valid UTF-8, cut at limit
// bytes.
func (t Text) Decode(limit int) string {
	d := scanText{b: make([]byte, 0, min(len(t), limit)), limit: limit}
	for _, c := range t {
		if e := d.read(c); e == textTooLong || e == textBroken || e == textEnds {
			break
		}
	}
	d.halfPair()
	return validText(d.b, d.tooLong)
}

// maxCount bounds a number of tokens, so that no sum over choices overflows.
const maxCount = 1 << 53

// str reads a string; any other value is passed over and is nil.
func (s *scan) str() Text {
	if s.peek() != '"' {
		s.skip()
		return nil
	}
	return s.text()
}

// name reads a string that names something of ours, without its escapes; nil
// where it is none.
func (s *scan) name() []byte {
	t := s.str()
	if t == nil || !s.escaped {
		return t
	}
	return []byte(t.Decode(maxScalar))
}

// textIn reads an object and returns its member of that name, if it is a string.
func (s *scan) textIn(name string) Text {
	var t Text
	if !s.enter('{') {
		s.skip()
		return nil
	}
	for s.more('}') {
		if string(s.key()) == name {
			t = s.str()
		} else {
			s.skip()
		}
	}
	return t
}

// scalar reads a string or a literal; null and what nests are nil.
func (s *scan) scalar() Text {
	switch s.peek() {
	case '"':
		return s.text()
	case '{', '[':
		s.skipNested()
		return nil
	}
	if s.null() {
		return nil
	}
	return s.literal()
}

// number reads a number of tokens. As servers send it, it may be a string or
// have a fraction of zero; below zero, and beyond what can be, it is absent.
func (s *scan) number() Count {
	b := s.scalar()
	if len(b) == 0 {
		return Count{}
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' || n >= maxCount/10 {
			return slowNumber(b)
		}
		n = n*10 + int64(c-'0')
	}
	return Count{N: n, OK: true}
}

func slowNumber(b []byte) Count {
	v, ok := parseFloat(b)
	if !ok || v < 0 || v > maxCount || v != math.Trunc(v) {
		return Count{}
	}
	return Count{N: int64(v), OK: true}
}

// float reads a measurement; what is no finite number is absent.
func (s *scan) float() Float {
	v, ok := parseFloat(s.scalar())
	return Float{V: v, OK: ok}
}

// parseFloat reads a decimal number, however large: hexadecimal, underscores
// and the words for infinity are none of JSON's.
func parseFloat(b []byte) (float64, bool) {
	if bytes.IndexByte(b, '\\') >= 0 {
		b = []byte(Text(b).Decode(maxScalar + 1))
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || len(b) > maxScalar {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// index reads the index of a choice: absent is the first, and -1 is none that
// is followed.
func (s *scan) index() int {
	if s.null() {
		return 0
	}
	n := s.number()
	if !n.OK || n.N >= MaxChoices {
		return -1
	}
	return int(n.N)
}

// shown tells whether the next value is a string that is not empty. Nothing else
// of the string may matter: it is where a form gets its hole.
func (s *scan) shown() bool {
	text := s.str()
	if len(text) == 0 {
		return false
	}
	s.to = s.i - 1
	s.from = s.to - len(text)
	return true
}

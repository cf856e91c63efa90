package dialect

import (
	"unicode/utf16"
	"unicode/utf8"
)

// scanText collects one string or literal, cut anywhere, up to a limit.
type scanText struct {
	b       []byte
	limit   int
	tooLong bool // b has the beginning only
	escaped bool // after a backslash
	hex     int  // hex digits of a \u escape that are still to come
	code    rune // the digits so far
	high    rune // the first half of a surrogate pair, 0 for none
}

// scanEvent is what a byte did to a string.
type scanEvent uint8

const (
	textGoesOn scanEvent = iota
	textEnds
	textTooLong
	textBroken
)

func (t *scanText) begin(limit int) { *t = scanText{b: t.b[:0], limit: limit} }

// put adds one byte.
func (t *scanText) put(c byte) {
	if len(t.b) >= t.limit {
		t.tooLong = true
		return
	}
	t.b = append(t.b, c)
}

// putRune adds one character, never a part of it.
func (t *scanText) putRune(r rune) {
	if len(t.b)+utf8.RuneLen(r) > t.limit {
		t.tooLong = true
		return
	}
	t.b = utf8.AppendRune(t.b, r)
}

// read takes one byte of a string after its opening quote.
func (t *scanText) read(c byte) scanEvent {
	switch {
	case t.hex > 0:
		digit, ok := hexValue(c)
		if !ok {
			return textBroken
		}
		t.code = t.code<<4 | digit
		if t.hex--; t.hex == 0 {
			t.unit(t.code)
		}
	case t.escaped:
		t.escaped = false
		if c == 'u' {
			t.hex, t.code = 4, 0
			break
		}
		c, ok := unescape(c)
		if !ok {
			return textBroken
		}
		t.halfPair()
		t.put(c)
	case c == '\\':
		t.escaped = true
	case c == '"':
		t.halfPair()
		return textEnds
	default:
		t.halfPair()
		t.put(c)
	}
	if t.tooLong {
		return textTooLong
	}
	return textGoesOn
}

// unit takes one UTF-16 code unit.
func (t *scanText) unit(r rune) {
	if t.high != 0 {
		pair := utf16.DecodeRune(t.high, r)
		if pair != utf8.RuneError {
			t.high = 0
			t.putRune(pair)
			return
		}
		t.halfPair()
	}
	switch {
	case r >= 0xD800 && r < 0xDC00:
		t.high = r
	case utf16.IsSurrogate(r):
		t.putRune(utf8.RuneError)
	default:
		t.putRune(r)
	}
}

// halfPair writes off the first half of a pair whose second did not come.
func (t *scanText) halfPair() {
	if t.high != 0 {
		t.high = 0
		t.putRune(utf8.RuneError)
	}
}

func hexValue(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

func unescape(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// validText returns b as a string of valid UTF-8: each byte that is none becomes
// U+FFFD, but an incomplete character at the end of a beginning is left out.
func validText(b []byte, beginning bool) string {
	if beginning {
		for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
			if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					b = b[:len(b)-n]
				}
				break
			}
		}
	}
	if utf8.Valid(b) {
		return string(b)
	}
	valid := make([]byte, 0, len(b)+2*utf8.UTFMax)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		valid = utf8.AppendRune(valid, r)
		b = b[size:]
	}
	return string(valid)
}

package scrape

import (
	"bytes"
	"strconv"
)

// sample is one line behind its name: labels, if any, and the value.
type sample struct {
	rest   []byte // what was not read yet
	labels bool   // rest is inside the braces
	broken bool   // it is not of the text form

	name, value []byte // the label that next found
}

// splitName cuts a line behind the name.
func splitName(line []byte) (name []byte, s sample) {
	i := 0
	for i < len(line) && inName(line[i]) {
		i++
	}
	s.rest = bytes.TrimLeft(line[i:], " \t")
	if len(s.rest) > 0 && s.rest[0] == '{' {
		s.rest, s.labels = s.rest[1:], true
	}
	return line[:i], s
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':'
}

// next finds the next label, and false behind the last.
func (s *sample) next() bool {
	if !s.labels || s.broken {
		return false
	}
	s.rest = bytes.TrimLeft(s.rest, " \t,")
	if len(s.rest) > 0 && s.rest[0] == '}' {
		s.rest, s.labels = s.rest[1:], false
		return false
	}
	name, rest, ok := bytes.Cut(s.rest, []byte{'='})
	rest = bytes.TrimLeft(rest, " \t")
	if !ok || len(rest) == 0 || rest[0] != '"' {
		s.broken = true
		return false
	}
	end, escaped := 1, false
	for ; end < len(rest) && rest[end] != '"'; end++ {
		if rest[end] == '\\' {
			escaped = true
			end++
		}
	}
	if end >= len(rest) {
		s.broken = true
		return false
	}
	s.name, s.value, s.rest = bytes.TrimRight(name, " \t"), rest[1:end], rest[end+1:]
	if escaped {
		s.value = unescape(s.value)
	}
	return true
}

// unescape returns a label's value as it was before it was written.
func unescape(value []byte) []byte {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '\\' && i+1 < len(value) {
			i++
			if c = value[i]; c == 'n' {
				c = '\n'
			}
		}
		out = append(out, c)
	}
	return out
}

// number is the sample's value, ok if there is one.
func (s *sample) number() (v float64, ok bool) {
	for s.next() {
		continue
	}
	if s.broken {
		return 0, false
	}
	text := bytes.TrimLeft(s.rest, " \t")
	if i := bytes.IndexAny(text, " \t\r\n"); i >= 0 {
		text = text[:i]
	}
	// Go's own forms of numbers are not those of the text form.
	if bytes.ContainsAny(text, "pP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}

// addTo adds the sample to t. A value that can't be read is an unknown one.
func (s *sample) addTo(t *tally) {
	v, ok := s.number()
	if !ok {
		t.unknown = true
	}
	t.add(v)
}

package recording

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// jsonFiller fills one JSON text. It takes any bytes: what reads them later
// checks less than a parser would, and must find the same quotes, brackets and
// kinds of literals that it found before.
type jsonFiller struct {
	*filler

	b     []byte
	stack []level
	// lost: brackets don't match, so that only names that are known stay.
	lost bool
}

// level is an object or array that is open.
type level struct {
	object bool
	place  place // of an object
	rule   rule  // of the current member, or of the elements
	// naming: the next string is a member's name.
	naming bool
	// Of an object that is a choice: where its list of token ids is, and which
	// choice it is.
	ids   []byte
	index int
	// indexed: the next word is the index.
	indexed bool
}

// choice takes the index of the choice that l is.
func (l *level) choice(text string) {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		l.index = n
	}
}

// json fills a JSON text.
func (f *filler) json(b []byte) {
	j := jsonFiller{filler: f, b: b}
	for i := 0; i < len(b); {
		i = j.step(i)
	}
	for len(j.stack) > 0 {
		j.close()
	}
}

// step fills what stands at i and returns where to go on.
func (j *jsonFiller) step(i int) int {
	switch c := j.b[i]; {
	case c == '"':
		return j.text(i)
	case c == '{' || c == '[':
		return j.open(i)
	case c == '}' || c == ']':
		// As who passes over what it does not read, and counts brackets only.
		top := j.top()
		j.lost = j.lost || top == nil || top.object != (c == '}')
		if top != nil {
			j.close()
		}
	case c == ',':
		if top := j.top(); top != nil && top.object {
			top.naming, top.rule, top.indexed = true, hiddenRule, false
		}
	case isWord(c):
		return j.word(i)
	case c >= 0x80:
		j.b[i] = fillOther
	}
	return i + 1
}

func (j *jsonFiller) top() *level {
	if len(j.stack) == 0 {
		return nil
	}
	return &j.stack[len(j.stack)-1]
}

// rule is that of the value that comes.
func (j *jsonFiller) rule() rule {
	if top := j.top(); top != nil {
		return top.rule
	}
	return hiddenRule
}

// open begins an object or array.
func (j *jsonFiller) open(i int) int {
	r := j.rule()
	if j.b[i] == '{' {
		at := r.object
		if len(j.stack) == 0 {
			at = placeKnown
		}
		j.stack = append(j.stack, level{object: true, place: at, naming: true})
		return i + 1
	}
	if r.ids {
		return j.list(i)
	}
	j.stack = append(j.stack, level{rule: elementsOf(r)})
	return i + 1
}

// close ends the innermost one.
func (j *jsonFiller) close() {
	top := j.top()
	if top.ids != nil {
		j.ids.fill(top.index, top.ids)
	}
	j.stack = j.stack[:len(j.stack)-1]
}

// list takes a list of token ids. Which choice it is of may stand behind it.
func (j *jsonFiller) list(i int) int {
	from := i + 1
	length := bytes.IndexAny(j.b[from:], `]["{}`)
	if length < 0 || j.b[from+length] != ']' {
		j.stack = append(j.stack, level{}) // it is none, or broke off
		return from
	}
	list := j.b[from : from+length]
	if top := j.top(); top.ids == nil && top.place == placeChoice {
		top.ids = list
	} else {
		j.ids.fill(-1, list)
	}
	return from + length + 1
}

// text fills a string that begins at i.
func (j *jsonFiller) text(i int) int {
	end, whole := endOfText(j.b, i+1)
	t := j.b[i+1 : end]
	next := min(end+1, len(j.b))
	top := j.top()
	if top != nil && top.naming {
		top.naming = false
		if whole && colonFollows(j.b[next:]) {
			j.name(top, t)
			return next
		}
	}
	plainText, ok := unescape(t)
	if top != nil && top.indexed {
		top.choice(plainText)
	}
	if r := j.rule().text; !whole || r == fill || r == plain && !(ok && isPlain(plainText)) {
		fillText(t)
	}
	return next
}

// name takes the name of a member.
func (j *jsonFiller) name(top *level, t []byte) {
	// A broken name is "", which is nobody's.
	key, _ := unescape(t)
	rule, stays := ruleOf(top.place, []byte(key), j.strict || j.lost)
	top.rule = rule
	top.indexed = top.place == placeChoice && key == "index"
	if !stays {
		fillText(t)
	}
}

// word fills a number or a word that begins at i.
func (j *jsonFiller) word(i int) int {
	end := i
	for end < len(j.b) && isWord(j.b[end]) {
		end++
	}
	w := j.b[i:end]
	switch string(w) {
	case "true", "false", "null", "NaN", "Infinity", "-Infinity":
		return end
	}
	if top := j.top(); top != nil && top.indexed {
		top.choice(string(w))
	}
	if r := j.rule(); r.numbers == keep && isPlain(string(w)) {
		return end
	}
	// A reader that finds null looks no further.
	w = bytes.TrimPrefix(w, []byte("null"))
	number := isNumber(w)
	for k, c := range w {
		switch {
		case isDigit(c):
			w[k] = fillDigit
		case isLetter(c) && !number:
			w[k] = fillLetter
		}
	}
	return end
}

// isWord tells the bytes of numbers and words.
func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' || c == '+' || c == '.' }

// isNumber tells whether w has only what numbers are written with.
func isNumber(w []byte) bool {
	return len(bytes.TrimLeft(w, "0123456789+-.eE")) == 0
}

// isPlain tells whether a text stands for a number or a boolean where one is
// wanted.
func isPlain(text string) bool {
	const longest = 64
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return false
	}
	switch strings.ToLower(text) {
	case "true", "t", "yes", "y", "on", "false", "f", "no", "n", "off":
		return true
	}
	if isNumber([]byte(text)) {
		return true
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// endOfText returns where the string that begins at i ends: its quote, and
// whether there is one.
func endOfText(b []byte, i int) (end int, whole bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i, true
		case '\\':
			i++
		}
	}
	return len(b), false
}

func colonFollows(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == ':'
}

// unescape returns a string without its escapes; one that is broken is not ok.
func unescape(t []byte) (s string, ok bool) {
	if bytes.IndexByte(t, '\\') < 0 {
		return string(t), true
	}
	if err := json.Unmarshal([]byte(`"`+string(t)+`"`), &s); err != nil {
		return "", false
	}
	return s, true
}

// fillText replaces what stands between the quotes of a string. A broken escape
// stays one, because a reader may stop there. Control characters are line ends
// between lines of data.
func fillText(t []byte) {
	for i := 0; i < len(t); i++ {
		switch n := escape(t[i:]); {
		case n > 0:
			for k := range n {
				t[i+k] = fillLetter
			}
			i += n - 1
		case t[i] == '\\':
			// The byte behind it is filled, and no escape either; a u keeps its
			// meaning, which is to want four digits.
			if i+1 < len(t) && t[i+1] == 'u' {
				i++
			}
		case t[i] >= ' ':
			t[i] = fillLetter
		}
	}
}

// escape returns the length of the escape that t begins with, 0 for none.
func escape(t []byte) int {
	if len(t) < 2 || t[0] != '\\' {
		return 0
	}
	if t[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, t[1]) >= 0 {
			return 2
		}
		return 0
	}
	const length = len(`\u0000`)
	if len(t) < length {
		return 0
	}
	for _, c := range t[2:length] {
		if !isDigit(c) && !(c|0x20 >= 'a' && c|0x20 <= 'f') {
			return 0
		}
	}
	return length
}

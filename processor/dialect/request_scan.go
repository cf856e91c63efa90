package dialect

import "bytes"

// scanState is what the Scanner expects next.
type scanState uint8

const (
	stateStart      scanState = iota // the body's first byte that says something
	stateKeyOrEnd                    // after {
	stateKey                         // after a comma in an object
	stateColon                       // after a key
	stateValueOrEnd                  // after [
	stateValue                       // after a colon, or a comma in an array
	stateAfterValue                  // a comma or the end
	stateKeyText                     // in a key that is kept
	stateText                        // in a string that is kept
	stateLiteral                     // in a number, true, false or null
	stateSkipKey                     // in a key too long to matter
	stateSkipText                    // in a string whose rest is not kept
	stateSkip                        // in an object or array that is not read
	stateSkipNested                  // in a string of one
	stateOver                        // nothing more is read
)

// scanContainer is the object or array that is being read. The others are skipped
// by counting their depth.
type scanContainer uint8

const (
	inBody     scanContainer = iota // the object that the body is
	inOptions                       // the object "stream_options"
	inMessages                      // the array "messages"
	inMessage                       // an object in it
	inSampling                      // the object "sampling_params" of generate
	inAnswer                        // of a response, the object "response" or "message"
)

const bodyMark = "\xEF\xBB\xBF"

// step reads on at p[i] and returns where to read next: the same place only
// where it changed the state.
func (s *Scanner) step(p []byte, i int) int {
	switch s.state {
	case stateKeyText, stateText:
		return s.readText(p, i)
	case stateSkipKey, stateSkipText, stateSkipNested:
		return s.skipText(p, i)
	case stateLiteral:
		return s.readLiteral(p, i)
	case stateSkip:
		return s.skip(p, i)
	case stateStart:
		return s.start(p, i)
	}
	if isSpace(p[i]) {
		return i + 1
	}
	s.punctuation(p[i], s.offset+int64(i))
	return i + 1
}

// start passes over what may stand before the object.
func (s *Scanner) start(p []byte, i int) int {
	c := p[i]
	switch {
	case s.bom < len(bodyMark) && c == bodyMark[s.bom]:
		s.bom++
	case s.bom > 0 && s.bom < len(bodyMark):
		s.state = stateOver
	case isSpace(c):
		s.bom = len(bodyMark) // a mark stands first or not at all
	case c == '{':
		s.isObject = true
		s.state = stateKeyOrEnd
	default:
		s.state = stateOver
	}
	return i + 1
}

// punctuation takes one byte between keys and values; at is its offset.
func (s *Scanner) punctuation(c byte, at int64) {
	switch s.state {
	case stateKeyOrEnd, stateKey:
		switch {
		case c == '"':
			s.token.begin(maxScalar)
			s.state = stateKeyText
		case c == '}' && s.state == stateKeyOrEnd:
			s.leave(at)
		default:
			s.state = stateOver
		}
	case stateColon:
		s.state = stateValue
		if c != ':' {
			s.state = stateOver
		}
	case stateValueOrEnd, stateValue:
		if c == ']' && s.state == stateValueOrEnd {
			s.leave(at)
			return
		}
		s.beginValue(c, at)
	case stateAfterValue:
		switch {
		case c == ',' && s.in == inMessages:
			s.state = stateValue
		case c == ',':
			s.state = stateKey
		case c == s.in.end():
			s.leave(at)
		default:
			s.state = stateOver
		}
	}
}

// beginValue takes the first byte of a value.
func (s *Scanner) beginValue(c byte, at int64) {
	if s.in == inMessages {
		// A message without a role hides the role of the one before.
		s.request.LastRole = ""
		s.field = fieldNone
	}
	if s.field == fieldStreamOptions {
		s.options.begin(c, at)
	}
	if s.in == inBody {
		s.prompt.begin(at)
	}
	switch {
	case c == '"':
		switch s.field {
		case fieldModel:
			s.models.open = at
			s.token.begin(MaxModel)
		case fieldSession:
			s.token.begin(maxSession)
		default:
			s.token.begin(maxScalar)
		}
		s.state = stateText
		if s.field == fieldNone || s.field == fieldPrompt {
			s.state = stateSkipText
		}
	case c == '{' || c == '[':
		s.set(s.field, kindContainer, nil)
		s.enter(c)
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		if s.field == fieldModel && !s.response {
			s.models.open = at
		}
		s.token.begin(maxScalar)
		s.token.put(c)
		s.state = stateLiteral
	default:
		s.state = stateOver
	}
}

// enter begins an object or array.
func (s *Scanner) enter(c byte) {
	switch {
	case c == '{' && s.field == fieldAnswer:
		s.in, s.state = inAnswer, stateKeyOrEnd
	case c == '{' && s.field == fieldStreamOptions:
		s.in, s.state = inOptions, stateKeyOrEnd
	case c == '{' && s.field == fieldSampling && s.request.Dialect == Generate:
		s.in, s.state = inSampling, stateKeyOrEnd
	case c == '[' && s.field == fieldMessages:
		s.in, s.state = inMessages, stateValueOrEnd
	case c == '{' && s.in == inMessages:
		s.in, s.state = inMessage, stateKeyOrEnd
	default:
		s.nested, s.state = 1, stateSkip
		s.prompting = c == '[' && s.field == fieldPrompt
	}
}

// leave ends the object or array that is being read, whose last byte is at.
func (s *Scanner) leave(at int64) {
	switch s.in {
	case inBody:
		s.state, s.bodyEnd = stateOver, at
		return
	case inMessage:
		s.in = inMessages
	case inOptions:
		s.options.end(optionsObject, at+1)
		s.in = inBody
	default:
		s.in = inBody
	}
	s.ended(at + 1)
}

// ended takes the end of a value.
func (s *Scanner) ended(end int64) {
	s.state = stateAfterValue
	if s.in == inBody {
		s.prompt.end(s.piece, s.offset, end)
	}
}

// end returns the byte that ends c.
func (c scanContainer) end() byte {
	if c == inMessages {
		return ']'
	}
	return '}'
}

// readText reads a string that is kept, up to its end.
func (s *Scanner) readText(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch s.token.read(p[i]) {
		case textEnds:
			s.endText(s.offset + int64(i) + 1)
			return i + 1
		case textTooLong:
			s.models.tooLong()
			if s.state == stateKeyText {
				s.state = stateSkipKey
			} else {
				s.state = stateSkipText
			}
			return i + 1
		case textBroken:
			s.state, s.models.open = stateOver, -1
			return i + 1
		}
	}
	return i
}

// endText takes the end of a string that is a key or a value of ours.
func (s *Scanner) endText(end int64) {
	if s.state == stateKeyText || s.state == stateSkipKey {
		s.field = fieldNone
		if !s.token.tooLong {
			s.field = s.named(s.token.b)
		}
		if s.in == inBody {
			s.prompt.named(s.token.b)
		}
		s.state = stateColon
		return
	}
	s.endValue(kindString, end)
}

// skipText passes over a string up to its end.
func (s *Scanner) skipText(p []byte, i int) int {
	for i < len(p) {
		switch {
		case s.token.escaped:
			s.token.escaped = false
			i++
		case p[i] == '\\':
			s.token.escaped = true
			i++
		case p[i] != '"':
			if s.quote < i {
				s.quote = indexByteFrom(p, i, '"')
			}
			if s.slash < i {
				s.slash = indexByteFrom(p, i, '\\')
			}
			i = min(s.quote, s.slash)
		case s.state == stateSkipNested:
			s.state = stateSkip
			return i + 1
		default:
			s.endText(s.offset + int64(i) + 1)
			return i + 1
		}
	}
	return i
}

// skip passes over an object or array up to its end.
func (s *Scanner) skip(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case '"':
			s.countPrompt()
			s.state = stateSkipNested
			return i + 1
		case '{', '[':
			s.countPrompt()
			s.nested++
		case '}', ']':
			s.nested--
			if s.nested == 0 {
				s.ended(s.offset + int64(i) + 1)
				return i + 1
			}
		}
	}
	return i
}

// readLiteral reads a number or word, up to the byte after it. A byte that can
// be neither in one nor behind it breaks the body off, as in a string.
func (s *Scanner) readLiteral(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		if isSpace(c) || c == ',' || c == '}' || c == ']' {
			s.endValue(kindLiteral, s.offset+int64(i))
			return i
		}
		if !literalByte[c] {
			s.state, s.models.open = stateOver, -1
			return i + 1
		}
		if s.token.put(c); s.token.tooLong {
			s.models.open = -1
		}
	}
	return i
}

// endValue takes the end of a string or literal.
func (s *Scanner) endValue(k valueKind, end int64) {
	if s.field == fieldStreamOptions && k == kindLiteral && !s.token.tooLong && string(s.token.b) == "null" {
		s.options.end(optionsNull, end)
	}
	s.set(s.field, k, s.token.b)
	if s.field == fieldModel {
		s.models.end(k == kindString || string(s.token.b) == "null", s.request.Model, s.request.HasModel, end)
	}
	s.ended(end)
}

// countPrompt takes the first byte of a string or container in one that is not
// read: in a list of prompts it is one of them, in a prompt of token ids there
// is none.
func (s *Scanner) countPrompt() {
	if s.prompting && s.nested == 1 {
		s.prompts++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func indexByteFrom(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

package dialect

import (
	"bytes"
	"strings"
)

const (
	// maxBoundary is the longest boundary of a form, as RFC 2046 has it.
	maxBoundary = 70
	// maxFormLine is how much of a header line of a part is kept. A longer one
	// names no field of ours.
	maxFormLine = 1 << 10
)

// formState is where in a multipart form the reading is.
type formState uint8

const (
	formContent formState = iota // in a part's content, or before the first part
	formDelimiter
	formClosing // after the first dash behind a delimiter
	formLineEnd // after the CR behind a delimiter
	formHeader  // in a header line of a part
)

// formReader reads a multipart/form-data body: the fields that matter, and of the rest
// no more than a line. What a part with a file name has is passed over.
type formReader struct {
	// delimiter is what ends a part's content: CR LF, two dashes, the boundary.
	// A CR stands nowhere else in it, so a match that fails can begin anew only
	// at the byte that failed it.
	delimiter []byte
	state     formState
	matched   int // bytes of the delimiter seen
	// implied of those were not in the body: content can begin with a delimiter
	// that lacks its line end, because the line before had it.
	implied int

	line     scanText // of a part's headers
	field    member   // whose content it is
	preamble bool     // no part has begun
}

// FormBoundary returns the boundary of the form that contentType announces, ""
// where it announces none that can be read.
func FormBoundary(contentType string) string {
	kind, rest, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data") {
		return ""
	}
	boundary := ""
	for name, value := range parameters(rest) {
		if boundary == "" && strings.EqualFold(name, "boundary") {
			boundary = value
		}
	}
	if len(boundary) > maxBoundary || strings.ContainsAny(boundary, "\r\n") {
		return ""
	}
	return boundary
}

// newForm returns a reader for the form that contentType announces, nil where it
// announces none that can be read.
func newForm(contentType string) *formReader {
	boundary := FormBoundary(contentType)
	if boundary == "" {
		return nil
	}
	return &formReader{
		delimiter: []byte("\r\n--" + boundary),
		matched:   len("\r\n"), implied: len("\r\n"),
		preamble: true,
	}
}

// readForm reads on at p[i] and returns where to read next.
func (s *Scanner) readForm(p []byte, i int) int {
	f := s.form
	if f.state == formContent {
		return s.readContent(p, i)
	}
	c := p[i]
	switch f.state {
	case formDelimiter:
		switch c {
		case ' ', '\t': // padding, which some gateway may have added
		case '\r':
			f.state = formLineEnd
		case '-':
			f.state = formClosing
		default:
			s.state = stateOver
		}
	case formLineEnd:
		f.beginPart()
		if c != '\n' {
			s.state = stateOver
		}
	case formClosing:
		// It was the last part, or the form is broken.
		s.state = stateOver
	default:
		if c != '\n' {
			f.line.put(c)
			break
		}
		line := bytes.TrimSuffix(f.line.b, []byte("\r"))
		if len(line) == 0 && !f.line.tooLong {
			s.beginContent()
			break
		}
		f.header(line)
		f.line.begin(maxFormLine)
	}
	return i + 1
}

// readContent reads content, and what may be its end.
func (s *Scanner) readContent(p []byte, i int) int {
	f := s.form
	if f.matched == 0 {
		n := indexByteFrom(p, i, f.delimiter[0])
		s.content(p[i:n])
		if n == len(p) {
			return n
		}
		i = n
	}
	c := p[i]
	switch {
	case f.matched < len(f.delimiter) && c == f.delimiter[f.matched]:
		f.matched++
		return i + 1
	case f.matched == len(f.delimiter) && (c == '\r' || c == '-' || c == ' ' || c == '\t'):
		s.endContent()
		return i
	}
	// It was content, and c may begin the end.
	s.content(f.delimiter[f.implied:f.matched])
	f.matched, f.implied = 0, 0
	return i
}

// beginPart begins the headers of a part.
func (f *formReader) beginPart() {
	f.state, f.field, f.preamble = formHeader, fieldNone, false
	f.line.begin(maxFormLine)
}

// header takes a header line of a part.
func (f *formReader) header(line []byte) {
	field, ok := FormField(line)
	if !ok {
		return
	}
	if f.line.tooLong {
		field = ""
	}
	f.field = formField(field)
}

// FormField returns the field that a header line of a part names, "" for a file
// and where the line is too long. It is not ok for any other header.
func FormField(line []byte) (field string, ok bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if !strings.EqualFold(string(name), "content-disposition") {
		return "", false
	}
	if len(line) > maxFormLine {
		return "", true
	}
	_, rest, _ := strings.Cut(string(value), ";")
	for name, value := range parameters(rest) {
		switch strings.ToLower(name) {
		case "name":
			field = value
		case "filename", "filename*":
			return "", true
		}
	}
	return field, true
}

// formField returns what the field of that name means.
func formField(name string) member {
	switch name {
	case "model":
		return fieldModel
	case "stream":
		return fieldStream
	case "stream_include_usage":
		return fieldIncludeUsage
	case "stream_continuous_usage_stats":
		return fieldContinuousUsage
	}
	return fieldNone
}

// beginContent begins the content of a part.
func (s *Scanner) beginContent() {
	f := s.form
	f.state, f.matched, f.implied = formContent, len("\r\n"), len("\r\n")
	limit := maxScalar
	if f.field == fieldModel {
		limit = MaxModel
	}
	s.token.begin(limit)
}

// content takes bytes of a part's content.
func (s *Scanner) content(b []byte) {
	if s.form.field == fieldNone {
		return
	}
	kept := min(len(b), s.token.limit-len(s.token.b))
	s.token.b = append(s.token.b, b[:kept]...)
	s.token.tooLong = s.token.tooLong || kept < len(b)
}

// endContent takes the end of a part, with its value. An empty one counts as
// absent: a server takes its default then.
func (s *Scanner) endContent() {
	f := s.form
	f.state = formDelimiter
	if f.preamble || f.field == fieldNone {
		return
	}
	kind := kindString
	if len(s.token.b) == 0 {
		kind = kindLiteral
	}
	s.set(f.field, kind, s.token.b)
}

// parameters yields the parameters of a header value, names and values. It takes
// values with and without quotes, and never fails: clients write boundaries that
// the grammar wants quoted without quotes.
func parameters(s string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for s != "" {
			end := strings.IndexAny(s, "=;")
			if end < 0 {
				return
			}
			name := strings.TrimSpace(s[:end])
			if s[end] == ';' {
				s = s[end+1:]
				continue
			}
			var value string
			value, s = parameterValue(strings.TrimLeft(s[end+1:], " \t"))
			if !yield(name, value) {
				return
			}
		}
	}
}

// parameterValue reads a value at the beginning of s and returns what follows
// the semicolon after it.
func parameterValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ";")
		return strings.TrimSpace(value), rest
	}
	var b strings.Builder
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		// Only quotes and backslashes are escaped. Before others a backslash is
		// one, as in a path that a browser of Windows sends.
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
			i++
		}
		b.WriteByte(s[i])
	}
	_, rest, _ = strings.Cut(s[min(i, len(s)):], ";")
	return b.String(), rest
}

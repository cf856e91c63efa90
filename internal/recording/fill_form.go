package recording

import (
	"bytes"
	"strings"

	"github.com/inferspan/inferspan/processor/dialect"
)

// keptFields are the fields of a form that have no content.
var keptFields = map[string]bool{
	"model": true, "stream": true, "stream_include_usage": true, "stream_continuous_usage_stats": true,
	"response_format": true, "temperature": true,
}

// fillForm fills a multipart form as the scanner of requests reads one: what its
// parts have, but for the fields that are kept, and their names, but for those.
// From where the scanner gives it up, all is filled.
func fillForm(b []byte, boundary string) {
	delimiter := []byte("--" + boundary)
	for keeps := false; ; {
		end := nextDelimiter(b, delimiter)
		if !keeps || end == len(b) {
			// What nothing ends is no value, and may be anything.
			fillPart(b[:end])
		}
		if end == len(b) {
			return
		}
		b = bytes.TrimLeft(b[end+len(delimiter):], " \t")
		if !bytes.HasPrefix(b, []byte("\r\n")) {
			// The last one, or broken. What ended the value stays: any dash did.
			fillPart(bytes.TrimLeft(b, "-"))
			return
		}
		b, keeps = fillPartHead(b[len("\r\n"):])
	}
}

// nextDelimiter returns where in a part's content, or before the first part, the
// next delimiter begins, the length of b where there is none. Before it stands
// CR LF, or nothing.
func nextDelimiter(b, delimiter []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], delimiter)
		if i < 0 {
			return len(b)
		}
		i += from
		from = i + 1
		after := b[i+len(delimiter):]
		if len(after) == 0 || strings.IndexByte("\r- \t", after[0]) < 0 {
			continue // a longer one
		}
		if i == 0 || bytes.HasSuffix(b[:i], []byte("\r\n")) {
			return i
		}
	}
}

// fillPartHead fills the header lines of a part and returns what comes after
// them, and whether its content is kept.
func fillPartHead(b []byte) (rest []byte, keeps bool) {
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			fillPart(b)
			return nil, false
		}
		line := bytes.TrimSuffix(b[:end], []byte("\r"))
		b = b[end+1:]
		if len(line) == 0 {
			return b, keeps
		}
		field, ok := dialect.FormField(line)
		switch {
		case !ok:
			fillPart(line)
		case keptFields[field]:
			keeps = true
		default:
			// It stays one, since the last of several counts.
			keeps = false
			_, value, _ := bytes.Cut(line, []byte(":"))
			fillPart(value)
		}
	}
}

// fillPart fills what may be anything, a file too. No delimiter comes to be in
// it: that begins with a dash.
func fillPart(b []byte) {
	for i, c := range b {
		if c == '-' {
			b[i] = fillLetter
		}
	}
	fillWords(b)
}

package recording

import (
	"bytes"
	"strings"
)

// keptFields are the fields of a form that have no content.
var keptFields = map[string]bool{
	"model": true, "stream": true, "stream_include_usage": true, "stream_continuous_usage_stats": true,
	"response_format": true, "temperature": true,
}

// boundaryOf returns the boundary of a multipart form, "" for none.
func boundaryOf(contentType string) string {
	kind, rest, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data") {
		return ""
	}
	for parameter := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// fillForm fills a multipart form: what its parts have, but for the fields that
// are kept, and their names, but for those.
func fillForm(b []byte, boundary string) {
	delimiter := []byte("--" + boundary)
	end := nextDelimiter(b, delimiter, true)
	fillPart(b[:end]) // what stands before the first part
	for end < len(b) {
		b = b[end:]
		line := bytes.IndexByte(b, '\n') + 1 // the delimiter's
		if line == 0 {
			return
		}
		part := b[line:]
		end = nextDelimiter(part, delimiter, false)
		part = part[:end]
		end += line
		if content, keeps := fillPartHead(part); !keeps {
			fillPart(content)
		}
	}
}

// nextDelimiter returns where the line of the next delimiter begins, the length
// of b where there is none. The line end before it is not part of what it ends;
// where begins is set it may be the first line.
func nextDelimiter(b, delimiter []byte, begins bool) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], delimiter)
		if i < 0 {
			return len(b)
		}
		i += from
		from = i + 1
		after := b[i+len(delimiter):]
		if len(after) > 0 && strings.IndexByte("\r\n- \t", after[0]) < 0 {
			continue // a longer one
		}
		if i == 0 && begins || i > 0 && b[i-1] == '\n' {
			return i
		}
	}
}

// fillPartHead fills the header lines of a part and returns its content, and
// whether that is kept.
func fillPartHead(part []byte) (content []byte, keeps bool) {
	for len(part) > 0 {
		end := bytes.IndexByte(part, '\n')
		if end < 0 {
			fillPart(part)
			return nil, false
		}
		line := part[:end]
		part = part[end+1:]
		if len(bytes.TrimRight(line, "\r")) == 0 {
			return part, keeps
		}
		if bytes.EqualFold(line[:min(len(line), len("content-disposition"))], []byte("content-disposition")) {
			keeps = keptFields[fieldOf(string(line))]
			if keeps {
				continue
			}
		}
		fillPart(line)
	}
	return nil, false
}

// fieldOf returns the field that a content-disposition names, "" for a file.
func fieldOf(line string) string {
	field := ""
	_, rest, _ := strings.Cut(line, ";")
	for parameter := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "name":
			field = strings.Trim(strings.TrimSpace(value), `"`)
		case "filename", "filename*":
			return ""
		}
	}
	return field
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

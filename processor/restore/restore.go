// Package restore puts the name by which a client asked for a model back into the
// response of a server that knows the model by another. It goes by the structure of
// the JSON, never by the text: content that shows the name keeps it, and every byte
// that is not of a model's name stays as it came.
package restore

import (
	"bytes"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Editor edits one response, cut anywhere: one JSON text, or a stream of
// server-sent events. It holds back no more than a model's name, which is at most
// some KiB. It is not safe for concurrent use.
type Editor struct {
	text *dialect.Rewriter
	// stream tells that the response is a stream of events, whose data are texts.
	stream bool

	state lineState
	// matched is how much of the byte order mark, or of the name of a data line,
	// the line has so far.
	matched int
	blank   bool // the line is empty so far
	afterCR bool // an LF would be of the last line's end
}

// lineState is where in a line of a stream the reading is.
type lineState uint8

const (
	inMark  lineState = iota // where a byte order mark may be, at the beginning
	inName                   // in what may be the name of a data line
	inSpace                  // behind its colon, where one space is not data
	inData
	inOther // a line of another kind
)

const (
	mark = "\xEF\xBB\xBF"
	name = "data:"
)

// New returns an Editor for the response to a request of dialect d that asked for
// the model by this name. stream tells that the response is a stream of events.
func New(d dialect.Dialect, model string, stream bool) *Editor {
	return &Editor{text: dialect.NewRestorer(d, model), stream: stream, blank: true}
}

// Write takes the next bytes of the response and appends to dst what the client
// gets of them, and of those before.
func (e *Editor) Write(dst, frame []byte) []byte {
	if !e.stream {
		return e.text.Write(dst, frame)
	}
	// Where the next LF and CR stand; outdated when below at.
	lf, cr := -1, -1
	for at := 0; at < len(frame); {
		if e.afterCR {
			e.afterCR = false
			if frame[at] == '\n' {
				dst = append(dst, '\n')
				at++
				continue
			}
		}
		if lf < at {
			lf = indexFrom(frame, at, '\n')
		}
		if cr < at {
			cr = indexFrom(frame, at, '\r')
		}
		end := min(lf, cr)
		dst = e.line(dst, frame[at:end])
		if end == len(frame) {
			break
		}
		dst = e.endLine(dst, frame[end:end+1])
		at = end + 1
	}
	return dst
}

// Close ends the response and appends to dst what was held back.
func (e *Editor) Close(dst []byte) []byte { return e.text.Close(dst) }

// line takes a part of a line, without its end.
func (e *Editor) line(dst, b []byte) []byte {
	i := 0
	for i < len(b) && e.before(b[i]) {
		i++
	}
	dst = append(dst, b[:i]...)
	if e.state == inData {
		return e.text.Write(dst, b[i:])
	}
	return append(dst, b[i:]...)
}

// before takes the next byte of a line, up to its data, and tells whether it is
// still before them.
func (e *Editor) before(c byte) bool {
	switch e.state {
	case inMark:
		if c == mark[e.matched] {
			if e.matched++; e.matched == len(mark) {
				e.state, e.matched = inName, 0
			}
			return true
		}
		if e.state = inName; e.matched > 0 {
			e.state, e.blank = inOther, false // a part of a mark is none
			return false
		}
		return e.before(c)
	case inName:
		e.blank = false
		if e.matched < len(name) && c == name[e.matched] {
			if e.matched++; e.matched == len(name) {
				e.state = inSpace
			}
			return true
		}
		e.state = inOther
	case inSpace:
		e.state = inData
		return c == ' '
	}
	return false
}

// endLine takes the one byte that ends a line.
func (e *Editor) endLine(dst, end []byte) []byte {
	switch {
	case e.state != inData:
		dst = append(dst, end...)
	case e.text.Held():
		// No string goes on in another line: this is not JSON.
		dst = append(e.text.Close(dst), end...)
	default:
		dst = e.text.Write(dst, end) // white space, between two lines of one text
	}
	if e.blank {
		e.text.Restart() // the event is over
	}
	e.state, e.matched, e.blank, e.afterCR = inName, 0, true, end[0] == '\r'
	return dst
}

func indexFrom(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

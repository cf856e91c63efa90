// Package recording reads recorded exchanges, and plays them through the
// measuring core: what `inferspan replay` and the tests of the core do.
//
// The form, inferspan-exchange/1, is described beside the recordings of the
// test kit, in testdata/streams/README.md.
package recording

import (
	"strings"
	"time"
)

// Format is the form that is read.
const Format = "inferspan-exchange/1"

// Recording is one exchange. Times are offsets from when the request was
// written, and never go back.
type Recording struct {
	Name    string
	Server  string
	Note    string
	Request Request
	// Head is the response's; nil where none came.
	Head   *Head
	Pieces []Piece
	End    End
	EndAt  time.Duration
	// Counted is by how much the server's own counters grew meanwhile, by name;
	// nil where nobody looked.
	Counted map[string]float64
}

// Request is what the client sent.
type Request struct {
	Method  string
	Path    string // with its query string
	Headers Headers
	Body    []byte
}

// Head is a response's status line and headers.
type Head struct {
	At      time.Duration
	Status  int
	Headers Headers
}

// Piece is a part of a response's body, as one read gave it.
type Piece struct {
	At   time.Duration
	Data []byte
}

// Header is one header line.
type Header struct{ Name, Value string }

// Headers are header lines in their order.
type Headers []Header

// Get returns the first value of the header name, in any case, or "".
func (h Headers) Get(name string) string {
	for _, line := range h {
		if strings.EqualFold(line.Name, name) {
			return line.Value
		}
	}
	return ""
}

// End is how an exchange ended.
type End string

// The ends. Only EndEOF is a clean one.
const (
	EndEOF          End = "eof"
	EndTruncated    End = "truncated" // closed before the response's end
	EndReset        End = "reset"
	EndClientClosed End = "client_closed"
	EndTimeout      End = "timeout"
	EndAborted      End = "aborted" // it broke off, nobody knows by whom
	EndLost         End = "lost"    // it went on where it was not seen
)

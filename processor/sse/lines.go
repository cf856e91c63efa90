package sse

import "bytes"

// LineEnds finds where LF and CR stand in one piece of a stream. It looks at each
// byte once for each, whatever kind of line end the stream uses. That CR and LF
// behind it are one line end is for the caller to see, as they may be cut apart.
type LineEnds struct {
	lf, cr int // the next of each, the piece's length for none; outdated when below from
}

// NewLineEnds returns the LineEnds of a piece of which nothing was looked at.
func NewLineEnds() LineEnds { return LineEnds{lf: -1, cr: -1} }

// Next returns where the first LF or CR stands in piece from that place on, or the
// piece's length. The piece is the same with every call, and no place before that
// of the last one.
func (l *LineEnds) Next(piece []byte, from int) int {
	if l.lf < from {
		l.lf = indexFrom(piece, from, '\n')
	}
	if l.cr < from {
		l.cr = indexFrom(piece, from, '\r')
	}
	return min(l.lf, l.cr)
}

func indexFrom(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

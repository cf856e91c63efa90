// Package hide takes out of a response what we asked a server for and the client
// did not: the event with the usage at the end, and the usage on every chunk.
// What the client gets is, byte for byte, the stream that it would have got had
// nothing been asked.
//
// It knows what vLLM does when it is asked, and undoes no more than that:
//   - a last event without choices, with the usage; what was asked for goes with
//     the whole event,
//   - "usage" on each chunk, which goes with its comma; completions of vLLM
//     before 0.21 get back the null that stands there otherwise,
//   - the "system_fingerprint" of vLLM from 0.21 on, which moves from the finish
//     chunk to the last event, and back again. So the finish chunk waits for the
//     event after it.
//
// Usage that comes without being asked for, as some servers send it on their
// finish chunk, stays. So does null, which most servers send unasked.
package hide

import (
	"bytes"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/sse"
)

// DefaultMaxEvent is the largest event, in bytes, where New is given none.
const DefaultMaxEvent = 1 << 20

// keepBuffer is the largest buffer that a Hider keeps from one event to the
// next.
const keepBuffer = 16 << 10

// Hider edits one stream, cut anywhere. It is not safe for concurrent use.
//
// It holds back an event until its end is there, and the finish chunk until the
// next event is: at most two events of its maximum. A larger one passes as it
// came, and the one after it is edited again.
type Hider struct {
	judge judge
	max   int
	large int64

	// event is the event so far, line ends and comments included; line is where
	// its current line begins in it. data are its data lines.
	event []byte
	line  int
	data  []span
	// fields: a line of it is more than a comment.
	fields bool
	// joined is the data of an event with several data lines.
	joined []byte

	begun bool // the first line, which may have a byte order mark, is over
	// afterCR: the last line ended in CR, so an LF belongs to it; it is dropped
	// where the line was.
	afterCR, dropped bool
	// passing: the current event is too large, and passes; blank tells that
	// nothing of its current line was seen.
	passing, blank bool

	// finish is a finish chunk, and the comments after it, that waits for the
	// next event; brace is where its closing brace stands.
	finish  []byte
	brace   int
	waiting bool
}

// span is a part of an event.
type span struct{ from, to int }

// New returns a Hider for the response to a request of dialect d in which asked
// was asked. Events larger than maxEvent bytes pass; 0 takes [DefaultMaxEvent].
func New(d dialect.Dialect, asked dialect.Asked, maxEvent int) *Hider {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Hider{judge: judge{dialect: d, asked: asked}, max: maxEvent}
}

// Overflows returns the number of events that passed because they were too
// large.
func (h *Hider) Overflows() int64 { return h.large }

// Write takes the next bytes of the stream and appends to dst what the client
// gets of them, and of those before.
func (h *Hider) Write(dst, frame []byte) []byte {
	ends := sse.NewLineEnds()
	for at := 0; at < len(frame); {
		if h.afterCR {
			h.afterCR = false
			if frame[at] == '\n' {
				dst = h.endCRLF(dst, frame[at:at+1])
				at++
				continue
			}
		}
		end := ends.Next(frame, at)
		if end == len(frame) {
			return h.hold(dst, frame[at:])
		}
		dst = h.endLine(dst, frame[at:end+1])
		h.afterCR = frame[end] == '\r'
		at = end + 1
	}
	return dst
}

// Close ends the stream and appends to dst what was held back. The tail that
// lacks its blank line is edited where it is whole: a client may take it for an
// event.
func (h *Hider) Close(dst []byte) []byte {
	if len(h.event) > 0 && !h.passing {
		if h.line < len(h.event) {
			h.field(h.event[h.line:], h.line)
		}
		return h.release(h.endEvent(dst))
	}
	return h.release(dst)
}

// endCRLF takes the LF of a line that ended in CR.
func (h *Hider) endCRLF(dst, lf []byte) []byte {
	switch {
	case h.dropped:
		return dst
	case len(h.event) > 0:
		h.event = append(h.event, lf...)
		h.line++
		return dst
	}
	return h.give(dst, lf)
}

// hold keeps the beginning of a line.
func (h *Hider) hold(dst, piece []byte) []byte {
	if h.passing {
		h.blank = false
		return append(dst, piece...)
	}
	h.event = append(h.event, piece...)
	return h.limit(dst)
}

// limit lets an event that has become too large pass from here on.
func (h *Hider) limit(dst []byte) []byte {
	if len(h.event) <= h.max {
		return dst
	}
	h.large++
	h.passing, h.blank = true, h.line == len(h.event)
	dst = append(h.release(dst), h.event...)
	h.clear()
	return dst
}

// endLine takes the rest of a line, with one byte of its end.
func (h *Hider) endLine(dst, piece []byte) []byte {
	h.dropped = false
	if h.passing {
		h.passing = !h.blank || len(piece) > 1
		h.blank = true
		return append(dst, piece...)
	}
	h.event = append(h.event, piece...)
	line := h.event[h.line : len(h.event)-1]
	if !h.begun {
		h.begun = true
		if bytes.HasPrefix(line, []byte("\xEF\xBB\xBF")) {
			h.line += 3
			line = line[3:]
		}
	}
	over := len(line) == 0
	if !over {
		h.field(line, h.line)
	}
	h.line = len(h.event)
	switch {
	case h.line > h.max:
		dst = h.limit(dst)
		h.passing = !over
	case over:
		dst = h.endEvent(dst)
	case !h.fields:
		// A comment before an event is none of it: keep-alives don't wait.
		dst = h.give(dst, h.event)
		h.clear()
	}
	return dst
}

// field notes what a line, which begins at from, is.
func (h *Hider) field(line []byte, from int) {
	if line[0] == ':' {
		return
	}
	h.fields = true
	const name = "data"
	if !bytes.HasPrefix(line, []byte(name)) || len(line) > len(name) && line[len(name)] != ':' {
		return
	}
	at := min(len(name)+1, len(line))
	if at < len(line) && line[at] == ' ' {
		at++
	}
	h.data = append(h.data, span{from + at, from + len(line)})
}

// endEvent takes the end of an event and gives out what is left of it.
func (h *Hider) endEvent(dst []byte) []byte {
	defer h.clear()
	if len(h.data) == 0 {
		return h.give(dst, h.event)
	}
	v := h.judge.event(h.payload())
	if v.drop {
		if h.waiting && len(v.fingerprint) > 0 {
			dst = h.restore(dst, v.fingerprint)
		} else {
			dst = h.release(dst)
		}
		h.dropped = true
		return h.comments(dst)
	}
	dst = h.release(dst)
	if v.cut.to > v.cut.from {
		h.replace(h.raw(v.cut.from, false), h.raw(v.cut.to, true), v.with)
		v.brace -= v.cut.to - v.cut.from - len(v.with)
	}
	if !v.wait || len(h.data) > 1 {
		return append(dst, h.event...)
	}
	h.finish = append(h.finish[:0], h.event...)
	h.brace = h.data[0].from + v.brace
	h.waiting = true
	return dst
}

// payload returns the event's data: its data lines, joined by LF.
func (h *Hider) payload() []byte {
	if len(h.data) == 1 {
		return h.event[h.data[0].from:h.data[0].to]
	}
	h.joined = h.joined[:0]
	for i, line := range h.data {
		if i > 0 {
			h.joined = append(h.joined, '\n')
		}
		h.joined = append(h.joined, h.event[line.from:line.to]...)
	}
	return h.joined
}

// raw returns where an offset in the event's data stands in the event. At the
// border of two lines it is the end of the first where end is set.
func (h *Hider) raw(offset int, end bool) int {
	for _, line := range h.data {
		n := line.to - line.from
		if offset < n || offset == n && end {
			return line.from + offset
		}
		offset -= n + 1
	}
	return len(h.event)
}

// replace puts with in the place of a part of the event that is no shorter.
func (h *Hider) replace(from, to int, with string) {
	from += copy(h.event[from:to], with)
	h.event = append(h.event[:from], h.event[to:]...)
}

// restore gives out the finish chunk with its fingerprint.
func (h *Hider) restore(dst, fingerprint []byte) []byte {
	dst = append(dst, h.finish[:h.brace]...)
	dst = append(dst, `,"system_fingerprint":`...)
	dst = append(dst, fingerprint...)
	dst = append(dst, h.finish[h.brace:]...)
	h.waiting = false
	return dst
}

// release gives out the finish chunk that waits, as it is.
func (h *Hider) release(dst []byte) []byte {
	if h.waiting {
		h.waiting = false
		dst = append(dst, h.finish...)
	}
	return dst
}

// give gives out bytes that belong to no event: behind the finish chunk, where
// one waits.
func (h *Hider) give(dst, b []byte) []byte {
	if h.waiting && len(h.finish)+len(b) <= h.max {
		h.finish = append(h.finish, b...)
		return dst
	}
	return append(h.release(dst), b...)
}

// comments gives out the comments within an event that is dropped.
func (h *Hider) comments(dst []byte) []byte {
	for rest := h.event; len(rest) > 0; {
		n := min(bytes.IndexAny(rest, "\r\n")+1, len(rest))
		if n == 0 {
			n = len(rest) // the stream ended in it
		}
		if n < len(rest) && rest[n-1] == '\r' && rest[n] == '\n' {
			n++
		}
		if rest[0] == ':' {
			dst = append(dst, rest[:n]...)
		}
		rest = rest[n:]
	}
	return dst
}

// clear begins the next event.
func (h *Hider) clear() {
	h.line, h.fields, h.data = 0, false, h.data[:0]
	h.event, h.joined = kept(h.event), kept(h.joined)
	if !h.waiting {
		h.finish = kept(h.finish)
	}
}

// kept returns b, empty, for another use, or nil where it is too large to keep.
func kept(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// Package sse turns the bytes of a server-sent event stream into events, by
// the WHATWG rules, cut anywhere. It knows nothing of what an event says, and
// nothing of time: an event is returned by the first call of [Parser.Next]
// that has its last byte, so the caller's clock is the event's time.
//
// It never fails. What can't be an event is skipped, and what is too large is
// dropped, counted, and forgotten at the next blank line.
//
// Two rules are not the WHATWG's: an event whose data is empty is not returned
// (clients have nothing to do with it, and servers send it to keep a
// connection alive), and at a clean end [Parser.Finish] gives the event that
// lacks its blank line.
package sse

const (
	// DefaultMaxEvent is the largest event, in bytes, where New is given none.
	DefaultMaxEvent = 1 << 20
	// largestMaxEvent keeps sums of sizes far from overflowing.
	largestMaxEvent = 1 << 30
	// keepBuffer is the largest buffer that a Parser keeps from one event to
	// the next: one huge event must not cost its stream a megabyte for good.
	keepBuffer = 16 << 10
	// longestName is the length of "event:": a line longer than this tells
	// which field it is.
	longestName = 6
)

// Event is one event. Type is empty where the stream names none; Data is its
// data lines joined by LF, never empty. Both stay valid until the next call of
// Next, Push or Finish.
type Event struct{ Type, Data []byte }

// Parser holds the state of one stream. It is not safe for concurrent use.
//
// It never holds more than one event, at most its maximum and a few bytes, and
// copies only what is still incomplete when a frame ends: an event that lies
// whole in one frame, on one data line, is returned as a part of that frame.
type Parser struct {
	max        int
	keepAlives int64
	overflows  int64

	frame []byte
	pos   int
	ends  LineEnds // of frame

	// bom counts the bytes of a byte order mark that were seen at the very
	// start; from len(byteOrderMark) on it is no longer looked for.
	bom     int
	afterCR bool // the last line ended in CR: an LF now belongs to it

	// The line that is not complete yet. Invariant: ignore != ignoreNone
	// implies that tail is empty.
	tail   []byte
	ignore ignored

	// The event so far. data and eventType are parts of frame or of tail
	// until detach has copied them into the buffers beside them.
	data, eventType      []byte
	dataBuf, typeBuf     []byte
	dataOwned, typeOwned bool
	hasData              bool
	size                 int  // bytes of its data and event lines, line ends apart
	dropping             bool // too large: nothing counts until the blank line
	returned             bool // the event was handed out; the next call clears it
}

// ignored says why the rest of the current line is of no interest.
type ignored uint8

const (
	ignoreNone ignored = iota
	ignoreField
	ignoreComment
)

const byteOrderMark = "\xEF\xBB\xBF"

// New returns a Parser that drops events larger than maxEvent bytes, counted
// over the event's data and event lines without their line ends; 0 takes
// [DefaultMaxEvent].
func New(maxEvent int) *Parser {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Parser{max: min(maxEvent, largestMaxEvent)}
}

// KeepAlives returns the number of comment lines so far.
func (p *Parser) KeepAlives() int64 { return p.keepAlives }

// Overflows returns the number of events that were dropped because they were
// larger than the maximum.
func (p *Parser) Overflows() int64 { return p.overflows }

// Push gives the next bytes of the stream. Next must have returned false for
// the bytes before; after it has done so for these, no reference to frame is
// kept.
func (p *Parser) Push(frame []byte) {
	p.clearReturned()
	p.frame, p.pos, p.ends = frame, 0, NewLineEnds()
}

// Next returns the next event that is complete, or false when the bytes that
// were pushed hold no further one.
func (p *Parser) Next() (Event, bool) {
	p.clearReturned()
	if p.bom < len(byteOrderMark) {
		p.skipByteOrderMark()
	}
	for p.pos < len(p.frame) {
		if p.afterCR {
			p.afterCR = false
			if p.frame[p.pos] == '\n' {
				p.pos++
				continue
			}
		}
		end := p.ends.Next(p.frame, p.pos)
		piece := p.frame[p.pos:end]
		if end == len(p.frame) {
			p.pos = end
			p.hold(piece)
			break
		}
		p.afterCR = p.frame[end] == '\r'
		p.pos = end + 1
		if p.endLine(piece) {
			return p.event(), true
		}
	}
	p.detach()
	p.frame, p.pos = nil, 0
	return Event{}, false
}

// Finish returns the event that a clean end of the stream leaves without its
// blank line, or without the end of its last line, if there is one. Whether
// it is whole is for the caller to judge.
func (p *Parser) Finish() (Event, bool) {
	p.clearReturned()
	if len(p.tail) > 0 {
		p.endLine(nil)
	}
	if p.dropping || len(p.data) == 0 {
		p.clear()
		return Event{}, false
	}
	return p.event(), true
}

// event hands out the event and marks it as to be cleared.
func (p *Parser) event() Event {
	p.returned = true
	return Event{Type: p.eventType, Data: p.data}
}

// skipByteOrderMark passes over the mark at the very start of the stream,
// byte by byte as it can be cut. What only begins like one begins a line that
// is no field.
func (p *Parser) skipByteOrderMark() {
	for p.pos < len(p.frame) && p.bom < len(byteOrderMark) {
		if p.frame[p.pos] != byteOrderMark[p.bom] {
			if p.bom > 0 {
				p.ignore = ignoreField
			}
			p.bom = len(byteOrderMark)
			return
		}
		p.bom++
		p.pos++
	}
}

// hold keeps the beginning of a line whose end is not there yet, as far as it
// can matter.
func (p *Parser) hold(piece []byte) {
	if len(piece) == 0 || p.ignore != ignoreNone {
		return
	}
	// The event's earlier lines can be parts of tail's memory.
	p.detach()
	// A line longer than this is none of ours, or too large.
	room := p.max + longestName - len(p.tail)
	p.tail = append(p.tail, piece[:min(len(piece), room)]...)
	if undecided(p.tail) {
		return
	}
	kind := fieldOf(p.tail)
	switch {
	case kind == fieldComment:
		p.ignoreLine(ignoreComment)
	case kind == fieldOther || p.dropping:
		p.ignoreLine(ignoreField)
	case p.size+len(p.tail) > p.max:
		p.overflow()
		p.ignoreLine(ignoreField)
	}
}

func (p *Parser) ignoreLine(why ignored) {
	p.ignore = why
	p.tail = p.tail[:0]
}

// endLine takes the end of a line, and tells whether it completes an event.
func (p *Parser) endLine(piece []byte) bool {
	if p.ignore != ignoreNone {
		if p.ignore == ignoreComment {
			p.keepAlives++
		}
		p.ignore = ignoreNone
		return false
	}
	line := piece
	if len(p.tail) > 0 {
		room := p.max + longestName - len(p.tail)
		p.tail = append(p.tail, piece[:min(len(piece), room)]...)
		line = p.tail
		p.tail = p.tail[:0]
	}
	if len(line) == 0 {
		if len(p.data) > 0 {
			return true
		}
		p.clear()
		return false
	}
	kind := fieldOf(line)
	if kind == fieldComment {
		p.keepAlives++
		return false
	}
	if kind == fieldOther || p.dropping {
		return false
	}
	p.size += len(line)
	if p.size > p.max {
		p.overflow()
		return false
	}
	if kind == fieldData {
		p.addData(value(line, len("data")))
		return false
	}
	p.eventType, p.typeOwned = value(line, len("event")), false
	return false
}

// addData adds one data line's value.
func (p *Parser) addData(v []byte) {
	if !p.hasData {
		p.data, p.dataOwned, p.hasData = v, false, true
		return
	}
	p.detach()
	p.dataBuf = append(p.dataBuf, '\n')
	p.dataBuf = append(p.dataBuf, v...)
	p.data = p.dataBuf
}

// detach copies what the event so far has in memory that is about to change.
func (p *Parser) detach() {
	if p.hasData && !p.dataOwned {
		p.dataBuf = append(p.dataBuf[:0], p.data...)
		p.data, p.dataOwned = p.dataBuf, true
	}
	if len(p.eventType) > 0 && !p.typeOwned {
		p.typeBuf = append(p.typeBuf[:0], p.eventType...)
		p.eventType, p.typeOwned = p.typeBuf, true
	}
}

// overflow gives up the event, up to its blank line.
func (p *Parser) overflow() {
	p.overflows++
	p.clear()
	p.dropping = true
}

func (p *Parser) clearReturned() {
	if p.returned {
		p.clear()
	}
}

// clear forgets the event so far.
func (p *Parser) clear() {
	p.data, p.eventType = nil, nil
	p.dataOwned, p.typeOwned, p.hasData = false, false, false
	p.size, p.dropping, p.returned = 0, false, false
	p.dataBuf = kept(p.dataBuf)
	p.typeBuf = kept(p.typeBuf)
	p.tail = kept(p.tail)
}

// kept returns b, empty, for another use, or nil where it is too large to keep.
func kept(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// field is what a line means.
type field uint8

const (
	fieldOther field = iota // id, retry and whatever else: no use to us
	fieldComment
	fieldData
	fieldEvent
)

// fieldOf tells what a line, which is not empty, means.
func fieldOf(line []byte) field {
	switch {
	case line[0] == ':':
		return fieldComment
	case named(line, "data"):
		return fieldData
	case named(line, "event"):
		return fieldEvent
	}
	return fieldOther
}

// named tells whether line is of the field name; a field may lack its colon.
func named(line []byte, name string) bool {
	n := len(name)
	return len(line) >= n && string(line[:n]) == name && (len(line) == n || line[n] == ':')
}

// undecided tells whether the beginning of a line can still become any of the
// fields that count.
func undecided(line []byte) bool {
	return begins("data", line) || begins("event", line)
}

func begins(name string, line []byte) bool {
	return len(line) <= len(name) && name[:len(line)] == string(line)
}

// value returns what stands after the name of n bytes, its colon and one space.
func value(line []byte, n int) []byte {
	v := line[n:]
	if len(v) > 0 {
		v = v[1:]
	}
	if len(v) > 0 && v[0] == ' ' {
		v = v[1:]
	}
	return v
}

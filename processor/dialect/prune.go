package dialect

import "bytes"

const (
	// maxPruned bounds what is left of a body: 128 choices take a third of it.
	maxPruned = 32 << 10
	// maxKeptText is how much of a string is left.
	maxKeptText = 256
	// maxKeptDepth is how deep what is left may nest.
	maxKeptDepth = 6

	longestEscape = len(`\u0000`)
	escapeBegun   = -1
)

// keep tells whether the value of the member key, or for an array an element
// with no key, matters in a container at that place; and the place that the
// value is, if it is a container.
type keep func(in place, key []byte) (place, bool)

// place is where in a body a container stands.
type place uint8

const (
	placeTop place = iota
	placeChoices
	placeChoice
	placeWhole   // everything inside matters
	placeNothing // that it is there matters, and nothing inside
)

// keepOpenAI leaves the members that openAIObject, and of a choice the members
// that a whole answer needs. A choice's text never matters: a response that is
// not a stream has no token evidence.
func keepOpenAI(in place, key []byte) (place, bool) {
	switch in {
	case placeTop:
		switch string(key) {
		case "choices":
			return placeChoices, true
		case "id", "model", "object", "type", "code", "usage", "error", "metrics":
			return placeWhole, true
		}
	case placeChoices:
		return placeChoice, true
	case placeChoice:
		switch string(key) {
		case "index", "finish_reason":
			return placeWhole, true
		}
	case placeWhole:
		return placeWhole, true
	}
	return placeWhole, false
}

// pruner copies of a JSON text, given in pieces cut anywhere, only what
// matters, so that a body of any size can be read with little memory. What it
// leaves out only has to have its quotes and brackets in order.
type pruner struct {
	keep keep
	out  []byte

	state pruneState
	// stack has the containers that are kept; the innermost is at depth-1.
	// Invariant: depth <= maxKeptDepth.
	stack [maxKeptDepth]struct {
		place  place
		object bool
		filled bool // a member was kept: the next needs a comma
	}
	depth int
	// next is where the value that comes stands, wanted whether it is kept.
	next   place
	wanted bool
	// keyAt is where in out the name of the current member begins.
	keyAt int
	// textAt is where in out the current string or literal begins; cut: no more
	// of it is kept.
	textAt int
	cut    bool
	// escape is escapeBegun behind a backslash, then the hex digits to come.
	escape int
	// braces and nested are of a container that is left out: bit n of braces
	// tells whether the bracket at that depth is a brace.
	braces uint64
	nested int
}

type pruneState uint8

const (
	pruneValue      pruneState = iota
	pruneFirst                 // after an opening bracket: a key, an element or the end
	pruneKey                   // after a comma in an object
	pruneColon                 // after a key
	pruneAfter                 // after a value
	pruneKeyText               // in a key
	pruneText                  // in a string
	pruneLiteral               // in a number or word
	pruneNested                // in a container that is left out
	pruneNestedText            // in a string of one
	pruneEnd                   // the text is whole; white space may follow
	pruneBad
)

// write takes the next bytes.
func (p *pruner) write(b []byte) {
	for i := 0; i < len(b) && p.state != pruneBad; {
		switch p.state {
		case pruneKeyText, pruneText, pruneNestedText:
			i = p.text(b, i)
		case pruneLiteral:
			i = p.literal(b, i)
		case pruneNested:
			i = p.skip(b, i)
		default:
			if !isSpace(b[i]) {
				p.punctuation(b[i])
			}
			i++
		}
		if len(p.out) > maxPruned {
			p.state = pruneBad
		}
	}
}

// whole tells whether the text was a whole object.
func (p *pruner) whole() bool { return p.state == pruneEnd }

// punctuation takes a byte between names and values.
func (p *pruner) punctuation(c byte) {
	switch p.state {
	case pruneValue:
		p.value(c)
	case pruneFirst:
		p.first(c)
	case pruneKey:
		p.key(c)
	case pruneColon:
		p.state = pruneBad
		if c == ':' {
			p.state = pruneValue
		}
	case pruneAfter:
		p.after(c)
	default:
		p.state = pruneBad
	}
}

// first takes what stands behind an opening bracket.
func (p *pruner) first(c byte) {
	top := &p.stack[p.depth-1]
	switch {
	case c == '}' && top.object, c == ']' && !top.object:
		p.close(c)
	case top.object:
		p.key(c)
	default:
		p.element()
		p.value(c)
	}
}

// after takes what stands behind a value.
func (p *pruner) after(c byte) {
	top := &p.stack[p.depth-1]
	switch {
	case c == ',' && top.object:
		p.state = pruneKey
	case c == ',':
		p.element()
		p.state = pruneValue
	case c == '}' && top.object, c == ']' && !top.object:
		p.close(c)
	default:
		p.state = pruneBad
	}
}

// key begins a member's name.
func (p *pruner) key(c byte) {
	if c != '"' {
		p.state = pruneBad
		return
	}
	p.keyAt = len(p.out)
	p.comma()
	p.out = append(p.out, '"')
	p.beginText(pruneKeyText, true)
}

// comma sets the comma before a member that is not the first.
func (p *pruner) comma() {
	if p.stack[p.depth-1].filled {
		p.out = append(p.out, ',')
	}
}

// named takes the end of a member's name.
func (p *pruner) named() {
	top := &p.stack[p.depth-1]
	name := p.out[p.textAt:]
	if bytes.IndexByte(name, '\\') >= 0 {
		var s scan
		name = s.unescape(name)
	}
	p.next, p.wanted = p.keep(top.place, name)
	p.state = pruneColon
	if !p.wanted {
		p.out = p.out[:p.keyAt]
		return
	}
	p.out = append(p.out, '"', ':')
	top.filled = true
}

// element begins an array's element.
func (p *pruner) element() {
	top := &p.stack[p.depth-1]
	p.next, p.wanted = p.keep(top.place, nil)
	if p.wanted {
		p.comma()
		top.filled = true
	}
}

// value takes a value's first byte.
func (p *pruner) value(c byte) {
	switch {
	case p.depth == 0:
		if c != '{' {
			p.state = pruneBad
			return
		}
		p.open(c, placeTop)
	case c == '"':
		if p.wanted {
			p.out = append(p.out, c)
		}
		p.beginText(pruneText, p.wanted)
	case c == '{' || c == '[':
		if p.wanted && p.depth < maxKeptDepth {
			p.open(c, p.next)
			return
		}
		if p.wanted {
			p.out = append(p.out, "null"...)
		}
		p.braces, p.nested, p.state = 0, 0, pruneNested
		p.skip([]byte{c}, 0)
	case literalByte[c]:
		p.state = pruneLiteral
		p.textAt = len(p.out)
		p.literal([]byte{c}, 0)
	default:
		p.state = pruneBad
	}
}

// open begins a container that is kept.
func (p *pruner) open(c byte, at place) {
	p.stack[p.depth].place = at
	p.stack[p.depth].object = c == '{'
	p.stack[p.depth].filled = false
	p.depth++
	p.out = append(p.out, c)
	p.state = pruneFirst
}

// close ends one.
func (p *pruner) close(c byte) {
	p.out = append(p.out, c)
	p.depth--
	p.state = pruneAfter
	if p.depth == 0 {
		p.state = pruneEnd
	}
}

// text reads on in a string, up to its end. It keeps the beginning, and never a
// part of an escape.
func (p *pruner) text(b []byte, i int) int {
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case p.escape == escapeBegun:
			p.escape = 0
			if c == 'u' {
				p.escape = 4
			}
		case p.escape > 0:
			p.escape--
		case c == '"':
			p.endText()
			return i + 1
		default:
			room := maxKeptText - (len(p.out) - p.textAt)
			if c == '\\' {
				p.escape = escapeBegun
				room -= longestEscape - 1
			}
			p.cut = p.cut || room <= 0
		}
		if !p.cut {
			p.out = append(p.out, c)
		}
	}
	return i
}

// endText takes the end of a string.
func (p *pruner) endText() {
	switch p.state {
	case pruneKeyText:
		p.named()
		return
	case pruneNestedText:
		p.state = pruneNested
		return
	}
	if p.wanted {
		p.out = append(p.out, '"')
	}
	p.state = pruneAfter
}

// beginText begins a string.
func (p *pruner) beginText(state pruneState, wanted bool) {
	p.state, p.textAt, p.escape, p.cut = state, len(p.out), 0, !wanted
}

// literal reads on in a number or word, up to the byte behind it.
func (p *pruner) literal(b []byte, i int) int {
	for ; i < len(b); i++ {
		c := b[i]
		if !literalByte[c] {
			p.state = pruneAfter
			return i
		}
		// One too long to be of use is left longer than any that is.
		if p.wanted && len(p.out)-p.textAt <= maxScalar {
			p.out = append(p.out, c)
		}
	}
	return i
}

// skip reads on in a container that is left out, up to its end.
func (p *pruner) skip(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			p.beginText(pruneNestedText, false)
			return i + 1
		case '{', '[':
			if p.nested == maxDepth {
				p.state = pruneBad
				return i
			}
			p.braces <<= 1
			if c == '{' {
				p.braces |= 1
			}
			p.nested++
		case '}', ']':
			if (c == '}') != (p.braces&1 == 1) {
				p.state = pruneBad
				return i
			}
			p.braces >>= 1
			if p.nested--; p.nested == 0 {
				p.state = pruneAfter
				return i + 1
			}
		}
	}
	return i
}

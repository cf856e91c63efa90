package meter

import (
	"encoding/binary"
	"slices"
	"time"
)

// chunkMarks is the chunk marks that are kept, in time order. A mark takes 40
// bytes; as varints, with the time since the one before, most take 14, of which
// every live stream holds as many as there are kept.
type chunkMarks struct {
	packed []byte
	n      int
	last   time.Duration // of the last one
}

// add appends a chunk's mark.
func (c *chunkMarks) add(k Mark) {
	b := binary.AppendUvarint(c.packed, uint64(k.At-c.last))
	b = binary.AppendUvarint(b, uint64(k.Gap))
	for _, v := range [...]int32{k.Choice, k.Index, k.Tokens, k.Bytes} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	c.packed, c.last = b, k.At
	c.n++
}

// cutMark returns the first mark of b, whose predecessor was at before, and the rest.
func cutMark(b []byte, before time.Duration) (k Mark, rest []byte) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	k.Kind = MarkChunk
	k.At = before + time.Duration(next())
	k.Gap = time.Duration(next())
	k.Choice, k.Index, k.Tokens, k.Bytes = int32(next()), int32(next()), int32(next()), int32(next())
	return k, b
}

// thin keeps every second one. What is kept takes no more room than it did with
// what is not.
func (c *chunkMarks) thin() {
	rest, n := c.packed, c.n
	*c = chunkMarks{packed: c.packed[:0]}
	var k Mark
	for i := range n {
		k, rest = cutMark(rest, k.At)
		if i%2 == 0 {
			c.add(k)
		}
	}
}

// appendTo appends all of them.
func (c *chunkMarks) appendTo(list []Mark) []Mark {
	var k Mark
	rest := c.packed
	list = slices.Grow(list, c.n)
	for range c.n {
		k, rest = cutMark(rest, k.At)
		list = append(list, k)
	}
	return list
}

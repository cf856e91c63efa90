package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields walks over the fields of one protobuf message, in the order of the
// wire.
type fields struct {
	rest []byte
	end  int // of rest, in the text that from cuts from
	err  error

	num  protowire.Number
	typ  protowire.Type
	n    uint64 // of a varint or fixed64 field
	data []byte // of a bytes field
}

// walk walks over b.
func walk(b []byte) fields { return fields{rest: b, end: len(b)} }

// next reads the next field and tells whether there was one. After the last one
// err tells whether the message was well formed.
func (f *fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	num, typ, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		return f.fail(n)
	}
	f.num, f.typ, f.rest = num, typ, f.rest[n:]
	switch typ {
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(f.rest)
	case protowire.Fixed64Type:
		f.n, n = protowire.ConsumeFixed64(f.rest)
	case protowire.BytesType:
		f.data, n = protowire.ConsumeBytes(f.rest)
	default:
		n = protowire.ConsumeFieldValue(num, typ, f.rest)
	}
	if n < 0 {
		return f.fail(n)
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) fail(code int) bool {
	f.err = fmt.Errorf("%d bytes before the end: %w", len(f.rest), protowire.ParseError(code))
	return false
}

// isBytes and isVarint tell that the field in hand is the one of that number. One
// of another type is not: readers of protobuf skip it.
func (f *fields) isBytes(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.BytesType
}

func (f *fields) isVarint(num protowire.Number) bool {
	return f.num == num && f.typ == protowire.VarintType
}

// inside walks over the message in the field in hand.
func (f *fields) inside() fields {
	return fields{rest: f.data, end: f.end - len(f.rest)}
}

// from is the field in hand as a part of text, which is what f or the one that f
// is inside of walks over. Many strings share one copy that way.
func (f *fields) from(text string) string {
	end := f.end - len(f.rest)
	return text[end-len(f.data) : end]
}

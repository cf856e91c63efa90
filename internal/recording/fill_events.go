package recording

import (
	"bytes"

	"github.com/inferspan/inferspan/processor/dialect"
)

// events fills a stream of server-sent events. Line ends, the names of fields
// and the end mark stay.
func (f *filler) events(b []byte) {
	var data [][]byte // of the event so far, a part for each line
	b = bytes.TrimPrefix(b, []byte(bodyMark))
	for len(b) > 0 {
		line := b
		if end := bytes.IndexAny(b, "\r\n"); end >= 0 {
			line = b[:end:end]
		}
		b = afterLine(b[len(line):])
		if len(line) == 0 {
			f.data(data)
			data = data[:0]
			continue
		}
		if value, ok := f.field(line); ok {
			data = append(data, value)
		}
	}
	f.data(data)
}

// afterLine returns what follows the line end that b begins with.
func afterLine(b []byte) []byte {
	if bytes.HasPrefix(b, []byte("\r\n")) {
		return b[2:]
	}
	return b[min(1, len(b)):]
}

// field fills one line, but returns the value of a data field.
func (f *filler) field(line []byte) (data []byte, ok bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return value, true
	case "event":
		if !isName(value) {
			fillWords(value)
		}
	case "id", "retry", "":
		fillWords(value)
	default:
		fillWords(line)
	}
	return nil, false
}

// data fills one event's data.
func (f *filler) data(parts [][]byte) {
	if len(parts) == 1 {
		f.value(parts[0])
		return
	}
	all := bytes.Join(parts, []byte("\n"))
	f.value(all)
	for _, p := range parts {
		copy(p, all)
		all = all[min(len(p)+1, len(all)):]
	}
}

func (f *filler) value(data []byte) {
	if !dialect.IsDone(data) {
		f.body(data)
	}
}

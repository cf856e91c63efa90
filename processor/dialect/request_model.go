package dialect

// modelValues is where the top-level model values of a body stand that a server
// takes for a name, so that a Rewriter can replace them. Null is one of them.
// All offsets are in the body; -1 is none.
type modelValues struct {
	// open is where a value began that has not ended; long the same for a name
	// beyond MaxModel, once it is beyond.
	open, long int64
	// ended are those that have ended, until a Rewriter takes them.
	ended []modelValue
	// all has ended grow as long as it takes. Else it stops at maxModelValues, and
	// lost tells that some are missing.
	all, lost bool
}

// modelValue is one of them.
type modelValue struct {
	bodySpan
	name  string
	named bool // a string of MaxModel bytes at most, not null
}

// maxModelValues is how many model values are remembered for a Rewriter that may
// never come. Bodies have one.
const maxModelValues = 16

// tooLong takes it that the value being read is a name beyond MaxModel, if it is a
// model's.
func (m *modelValues) tooLong() {
	if m.open >= 0 {
		m.long, m.open = m.open, -1
	}
}

// end takes the end of a model value. usable tells that a server takes it for a
// name.
func (m *modelValues) end(usable bool, name string, named bool, end int64) {
	switch {
	case m.long >= 0:
		m.add(modelValue{bodySpan: bodySpan{m.long, end}})
	case m.open >= 0 && usable:
		m.add(modelValue{bodySpan{m.open, end}, name, named})
	}
	m.open, m.long = -1, -1
}

func (m *modelValues) add(v modelValue) {
	if !m.all && len(m.ended) == maxModelValues {
		m.lost = true
		return
	}
	m.ended = append(m.ended, v)
}

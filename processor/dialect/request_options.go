package dialect

// optionsKind is what a top-level stream_options is.
type optionsKind uint8

const (
	optionsAbsent optionsKind = iota
	optionsOpen               // begun, not ended
	optionsNull
	optionsObject
	optionsOther // no server takes it
)

// scanOptions is where the last top-level stream_options stands in the body.
type scanOptions struct {
	kind optionsKind
	span bodySpan // its end counts for null and objects only
}

// begin takes the first byte of one, at offset at.
func (o *scanOptions) begin(c byte, at int64) {
	*o = scanOptions{kind: optionsOther, span: bodySpan{start: at}}
	if c == '{' || c == 'n' {
		o.kind = optionsOpen
	}
}

// end takes the end of one that is of kind k.
func (o *scanOptions) end(k optionsKind, at int64) { o.kind, o.span.end = k, at }

// wish is what a client says about one of its stream options.
type wish uint8

const (
	wishOpen wish = iota // nothing
	wishNo
	wishYes
	wishBroken // what no server takes
)

// optionMember is one member of a stream_options object.
type optionMember struct {
	continuous bool // else include_usage
	wish       wish
	span       bodySpan // of its value, in the object
}

// options is a stream_options object as it was read.
type options struct {
	include, continuous wish // of several members the last
	members             []optionMember
	empty               bool
	closing             int64 // where its closing brace stands
}

// readOptions reads a stream_options object, and tells whether a server would
// take it.
func readOptions(b []byte) (o options, ok bool) {
	o.empty = true
	s := scan{b: b}
	s.enter('{') // what the scanner found is an object
	for s.more('}') {
		o.empty = false
		key := string(s.key())
		s.peek()
		start := s.i
		if key != "include_usage" && key != "continuous_usage_stats" {
			s.skip()
			continue
		}
		m := optionMember{continuous: key == "continuous_usage_stats", wish: s.wish()}
		m.span = bodySpan{int64(start), int64(s.i)}
		o.members = append(o.members, m)
		if m.continuous {
			o.continuous = m.wish
		} else {
			o.include = m.wish
		}
	}
	if !s.end() || o.include == wishBroken || o.continuous == wishBroken {
		return o, false
	}
	o.closing = int64(s.i - 1)
	return o, true
}

// wish reads a boolean as pydantic takes it; null is no.
func (s *scan) wish() wish {
	if s.null() {
		return wishNo
	}
	kind, value := kindLiteral, []byte(nil)
	switch s.peek() {
	case '{', '[':
		s.skipNested()
		kind = kindContainer
	case '"':
		kind = kindString
		value = []byte(Text(s.text()).Decode(maxScalar))
	default:
		value = s.literal()
	}
	yes := boolValue(kind, value, false)
	switch {
	case yes:
		return wishYes
	case boolValue(kind, value, true):
		return wishBroken // it stands for neither
	}
	return wishNo
}

// edits returns the edits that make every wish yes, of an object that stands at
// offset at.
func (o *options) edits(at int64) []bodyEdit {
	var edits []bodyEdit
	included, continuous := false, false
	for _, m := range o.members {
		if m.continuous {
			continuous = true
		} else {
			included = true
		}
		if m.wish != wishYes {
			edits = append(edits, bodyEdit{bodySpan{at + m.span.start, at + m.span.end}, []byte("true")})
		}
	}
	missing := ""
	if !included {
		missing = `,"include_usage":true`
	}
	if !continuous {
		missing += `,"continuous_usage_stats":true`
	}
	if o.empty {
		missing = missing[1:]
	}
	if missing != "" {
		closing := at + o.closing
		edits = append(edits, bodyEdit{bodySpan{closing, closing}, []byte(missing)})
	}
	return edits
}

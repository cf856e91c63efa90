package dialect

// Asked is what was asked of a server for our own sake, beyond what the client
// asked for. What it brings is to be hidden from the client.
type Asked struct {
	// IncludeUsage: an event with the usage at the end.
	IncludeUsage bool
	// Continuous: usage on every chunk.
	Continuous bool
	// Unsaid: the client sent stream options that leave include_usage open. vLLM
	// before 0.18 takes that for yes, and would have sent the event unasked.
	Unsaid bool
}

// Any tells whether anything was asked.
func (a Asked) Any() bool { return a.IncludeUsage || a.Continuous }

const (
	// maxOptions bounds the stream_options that are edited.
	maxOptions = 4 << 10
	// maxUndecided is how much of a body is held, from its stream_options on,
	// while what comes later can still decide whether to ask. A server begins
	// when it has the whole body, so that holding costs no time.
	maxUndecided = 256 << 10
	// askStride is the distance between the offsets in a body at which the limits
	// are looked at: fixed, so that the cutting of the body does not matter.
	askStride = 4 << 10

	usageWanted = `{"include_usage":true,"continuous_usage_stats":true}`
	usageMember = `,"stream_options":` + usageWanted
)

// asker decides whether a request is to ask for usage, and what is to change in
// its body for that.
//
// Never asked are: what is no stream, as vLLM answers stream_options there with
// 400; more than one choice, whose finish chunks could not be restored (vLLM
// moves the fingerprint from each of them into the usage event); beam search,
// which sends its whole answer as one event; and a client whose own wish can't
// be told from its body.
type asker struct {
	settled bool
	patient bool // the whole body is at hand: nothing is decided early
	asked   Asked
}

// from returns where the body is to be held back from, -1 for nowhere.
func (a *asker) from(s *Scanner) int64 {
	if a.settled || s.options.kind == optionsAbsent {
		return -1
	}
	return s.options.span.start
}

// decide settles the matter as soon as it can be, and returns the edits that it
// takes, in order. Of the body, held is what begins at start and ends where the
// scanner is. over says that no more of the body comes.
func (a *asker) decide(s *Scanner, held []byte, start int64, over bool) []bodyEdit {
	whole := s.bodyEnd >= 0
	if a.settled || !whole && !over && !s.Finished() && !a.late(s) {
		return nil
	}
	a.settled = true
	broken := !whole && (over || s.Finished())
	if broken || !s.request.Stream || s.request.N > 1 || s.beam || s.prompts > 1 {
		return nil
	}
	switch o := s.options; o.kind {
	case optionsAbsent:
		a.asked = Asked{IncludeUsage: true, Continuous: true}
		return []bodyEdit{{bodySpan{s.bodyEnd, s.bodyEnd}, []byte(usageMember)}}
	case optionsNull:
		if whole {
			a.asked = Asked{IncludeUsage: true, Continuous: true}
			return []bodyEdit{{o.span, []byte(usageWanted)}}
		}
	case optionsObject:
		if o.span.end-o.span.start <= maxOptions {
			return a.amend(held[o.span.start-start:o.span.end-start], o.span.start, whole)
		}
	}
	return nil
}

// late tells that too much of the body is held to wait for the rest of it.
func (a *asker) late(s *Scanner) bool {
	if a.patient || s.options.kind == optionsAbsent || s.offset%askStride != 0 {
		return false
	}
	held := s.offset - s.options.span.start
	return held > maxUndecided || s.options.kind == optionsOpen && held > maxOptions
}

// amend asks by what is missing in the client's own stream_options, which stand
// at offset at. Where the rest of the body is not known, it asks only where
// nothing in it can matter: the client gets the usage at the end anyway.
func (a *asker) amend(options []byte, at int64, whole bool) []bodyEdit {
	o, ok := readOptions(options)
	if !ok || o.include == wishOpen && o.continuous == wishYes {
		return nil
	}
	if o.include == wishYes {
		if o.continuous == wishYes {
			return nil
		}
		a.asked = Asked{Continuous: true}
	} else {
		if !whole {
			return nil
		}
		a.asked = Asked{IncludeUsage: true, Continuous: true, Unsaid: o.include == wishOpen}
	}
	return o.edits(at)
}

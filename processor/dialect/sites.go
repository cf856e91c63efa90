package dialect

// Sites is where those parts of a chat or completions event stand that asking
// for usage brings or moves. All are offsets in the event's data.
type Sites struct {
	// Usage is the member "usage", Fingerprint "system_fingerprint".
	Usage, Fingerprint Member
	// UsageObject tells that the usage is an object, not null. NullDetails, that
	// it has null for prompt_tokens_details: a server that sends what is not set
	// as null, as vLLM's completions did before 0.21.
	UsageObject, NullDetails bool
	// Choices is the number of choices, -1 where they are no list.
	Choices int
	// Finished tells that one of them has a finish reason; Bare that none of them
	// says anything.
	Finished, Bare bool
	// Close is the closing brace.
	Close int

	scan scan // on the stack it would be allocated
}

// Member is one member of an event's object.
type Member struct {
	Present bool
	// Value and End bracket its value.
	Value, End int
	// From and To bracket what goes with the member, its comma included, when it
	// is taken out.
	From, To int
}

// Read reads an event, and tells whether it is a whole object in which each of
// those members stands once at most. What was in at before is forgotten.
func (at *Sites) Read(data []byte) bool {
	*at = Sites{Choices: -1, scan: scan{b: data}}
	whole := at.read()
	at.scan.b = nil
	return whole
}

func (at *Sites) read() bool {
	s := &at.scan
	if !s.enter('{') {
		return false
	}
	var first *Member // the first member of the object, until the next begins
	for begin := true; s.more('}'); begin = false {
		comma := s.i - 1
		s.peek()
		start := s.i
		if first != nil {
			first.To, first = start, nil
		}
		key := s.key()
		s.peek()
		value := s.i
		var m *Member
		switch string(key) {
		case "choices":
			at.choices()
		case "usage":
			m = &at.Usage
			at.usage()
		case "system_fingerprint":
			m = &at.Fingerprint
			s.skip()
		default:
			s.skip()
		}
		if m == nil {
			continue
		}
		if m.Present {
			return false
		}
		*m = Member{Present: true, Value: value, End: s.i, From: comma, To: s.i}
		if begin {
			m.From, first = start, m
		}
	}
	at.Close = s.i - 1
	return s.end()
}

// usage reads the usage.
func (at *Sites) usage() {
	s := &at.scan
	if !s.enter('{') {
		s.skip()
		return
	}
	at.UsageObject = true
	for s.more('}') {
		details := string(s.key()) == "prompt_tokens_details"
		if details && s.null() {
			at.NullDetails = true
			continue
		}
		s.skip()
	}
}

// choices reads the choices.
func (at *Sites) choices() {
	s := &at.scan
	at.Choices, at.Finished, at.Bare = -1, false, true
	if !s.enter('[') {
		s.skip()
		return
	}
	at.Choices = 0
	for s.more(']') {
		at.Choices++
		if !s.enter('{') {
			at.Bare = false
			s.skip()
			continue
		}
		for s.more('}') {
			switch string(s.key()) {
			case "finish_reason":
				at.Finished = s.says() || at.Finished
			case "text":
				at.Bare = !s.says() && at.Bare
			case "delta":
				at.Bare = !s.tells() && at.Bare
			default:
				s.skip()
			}
		}
	}
	at.Bare = at.Bare && !at.Finished
}

// says reads a value, and tells whether it is more than null or empty text.
func (s *scan) says() bool {
	if s.null() {
		return false
	}
	if s.peek() == '"' {
		return len(s.text()) > 0
	}
	s.skip()
	return true
}

// tells reads a delta, and tells whether any of its members says anything.
func (s *scan) tells() bool {
	if !s.enter('{') {
		return s.says()
	}
	told := false
	for s.more('}') {
		s.key()
		told = s.says() || told
	}
	return told
}

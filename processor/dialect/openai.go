package dialect

// openAI is the form that chat and completions have, and what was made after
// them: a list of choices beside what is said of all of them. It is of each API
// what its own file says.
type openAI struct {
	choice choiceReader
	// requestID: the response is named by "request_id", not by "id".
	requestID bool
}

// choiceReader reads the object that is one choice.
type choiceReader func(s *scan, c *Choice)

// event reads an event of a stream whose events all have one form.
func (o openAI) event(f *Facts, _, data []byte) bool { return o.read(f, data) }

// read reads the top level of an event, or of a body. The scan lives in f: on
// the stack it would be allocated, since it is handed to a choiceReader.
func (o openAI) read(f *Facts, data []byte) bool {
	f.scan = scan{b: data}
	s := &f.scan
	if !s.enter('{') {
		return false
	}
	var flat flatError
	for s.more('}') {
		switch string(s.key()) {
		case "id":
			if o.requestID {
				s.skip()
			} else {
				f.ID = s.str()
			}
		case "request_id":
			if o.requestID {
				f.ID = s.str()
			} else {
				s.skip()
			}
		case "model":
			f.Model = s.str()
		case "choices":
			readChoices(f, o.choice)
		case "usage":
			readUsage(s, &f.Usage)
		case "error":
			readError(s, &f.Error)
		case "metrics":
			readMetrics(s, &f.Metrics)
		case "object":
			flat.object(s)
		case "type":
			flat.kind(s)
		case "code":
			flat.Code = s.scalar()
		default:
			s.skip()
		}
	}
	ok := s.end()
	s.b = nil
	switch {
	case len(f.Choices) > 0:
		// Beside choices an error is one choice's trouble, told by its finish.
		f.Error = Error{}
	case !f.Error.Set && flat.Set:
		f.Error = flat.Error
	}
	return ok
}

// flatError is an error whose members stand at the top, among those of whatever
// else it could have been: vLLM's before 0.10.1, and events of type error.
type flatError struct{ Error }

// object reads the member "object".
func (e *flatError) object(s *scan) { e.Set = string(s.str()) == typeError || e.Set }

// kind reads the member "type". One that says no more than that it is an error
// is none of the error's.
func (e *flatError) kind(s *scan) {
	e.Type = s.str()
	if string(e.Type) == typeError {
		e.Type, e.Set = nil, true
	}
}

// readChoices reads the choices that are objects and have an index that can be.
func readChoices(f *Facts, choice choiceReader) {
	s := &f.scan
	clear(f.Choices)
	f.Choices, f.Unread = f.Choices[:0], 0
	if !s.enter('[') {
		s.skip()
		return
	}
	for s.more(']') {
		if s.peek() != '{' || len(f.Choices) == MaxChoices {
			s.skip()
			f.Unread++
			continue
		}
		f.Choices = append(f.Choices, Choice{})
		c := &f.Choices[len(f.Choices)-1]
		choice(s, c)
		if c.Index < 0 {
			f.Choices = f.Choices[:len(f.Choices)-1]
			f.Unread++
		}
	}
}

// readUsage reads the object that is a usage; null and what is no object are
// none.
func readUsage(s *scan, u *Usage) {
	*u = Usage{}
	if !s.enter('{') {
		s.skip()
		return
	}
	u.Present = true
	for s.more('}') {
		switch string(s.key()) {
		case "prompt_tokens":
			u.Prompt = s.number()
		case "completion_tokens":
			u.Completion = s.number()
		case "prompt_tokens_details":
			u.Cached = s.numberIn("cached_tokens")
		case "completion_tokens_details":
			u.Reasoning = s.numberIn("reasoning_tokens")
		default:
			s.skip()
		}
	}
}

// numberIn reads an object and returns its member of that name.
func (s *scan) numberIn(name string) Count {
	var n Count
	if !s.enter('{') {
		s.skip()
		return n
	}
	for s.more('}') {
		if string(s.key()) == name {
			n = s.number()
		} else {
			s.skip()
		}
	}
	return n
}

// readError reads an error: an object, or a string with a message that can hold
// anything and is not kept. Null, false and "" are none.
func readError(s *scan, e *Error) {
	*e = Error{}
	if !s.enter('{') {
		b := s.scalar()
		e.Set = len(b) > 0 && string(b) != "false"
		return
	}
	e.Set = true
	for s.more('}') {
		switch string(s.key()) {
		case "type":
			e.Type = s.str()
		case "code":
			e.Code = s.scalar()
		default:
			s.skip()
		}
	}
}

// readMetrics reads what vLLM says of its own times.
func readMetrics(s *scan, m *Metrics) {
	*m = Metrics{}
	if !s.enter('{') {
		s.skip()
		return
	}
	m.Present = true
	for s.more('}') {
		switch string(s.key()) {
		case "time_to_first_token_ms":
			m.TimeToFirstTokenMS = s.float()
		case "generation_time_ms":
			m.GenerationTimeMS = s.float()
		case "queue_time_ms":
			m.QueueTimeMS = s.float()
		case "mean_itl_ms":
			m.MeanITLMS = s.float()
		case "tokens_per_second":
			m.TokensPerSecond = s.float()
		case "speculative_decoding":
			m.SpeculativeDecoding = s.object()
		default:
			s.skip()
		}
	}
}

// object reads an object, or null, as it stands; any other value is passed over
// and is nil.
func (s *scan) object() []byte {
	c := s.peek()
	start := s.i
	isNull := s.null()
	if !isNull {
		s.skip()
	}
	if s.bad || c != '{' && !isNull {
		return nil
	}
	return s.b[start:s.i]
}

// readIDs reads an array of token ids.
func (s *scan) readIDs(c *Choice) {
	c.IDs, c.IDList = 0, nil
	if s.peek() != '[' {
		s.skip()
		return
	}
	start := s.i + 1
	c.IDs = s.count()
	if !s.bad {
		c.IDList = s.b[start : s.i-1]
	}
}

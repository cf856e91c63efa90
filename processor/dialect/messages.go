package dialect

// The events of Anthropic's /v1/messages, each with a type: by the event's name,
// by its data, or by both.

// messagesRead is what an event says before its type is known.
type messagesRead struct {
	kind         []byte
	message      message
	block, delta Choice // what a content block begins with, and what is added
	finish       Text
	usage        Usage
}

// message is the object "message", or a whole answer.
type message struct {
	present bool
	finish  Text
	usage   Usage
}

// messagesEvent reads one event. The index in it is a content block's, not a
// choice's.
func messagesEvent(f *Facts, eventType, data []byte) bool {
	f.scan = scan{b: data}
	s := &f.scan
	if !s.enter('{') {
		return false
	}
	r := messagesRead{kind: eventType}
	for s.more('}') {
		switch string(s.key()) {
		case "type":
			if t := s.name(); len(t) > 0 {
				r.kind = t
			}
		case "message":
			r.message.read(f, s)
		case "content_block":
			readBlock(s, &r.block)
		case "delta":
			r.finish = readBlock(s, &r.delta)
		case "usage":
			readMessageUsage(s, &r.usage)
		case "error":
			readError(s, &f.Error)
		default:
			s.skip()
		}
	}
	ok := s.end()
	s.b = nil
	r.say(f)
	return ok
}

// say turns what was read into facts, now that the type is known.
func (r *messagesRead) say(f *Facts) {
	var c Choice
	switch string(r.kind) {
	case "message_start":
		// It counts for the prompt only.
		f.Usage = r.message.usage
		f.Usage.Completion = Count{}
	case "content_block_start":
		c = r.block
		c.EmptyText = false // a block begins: no token stands behind it
	case "content_block_delta":
		c = r.delta
	case "message_delta":
		f.Usage = r.usage
		f.Usage.Final = f.Usage.Present
		c.Finish = r.finish
	case "content_block_stop":
	case "message_stop":
		f.Done = true
		return
	case typeError:
		f.Error.Set = true
		return
	default:
		return
	}
	f.Choices = append(f.Choices, c)
}

// readBlock reads the beginning of a content block, or what a delta adds to it,
// or to the message: then it returns why that stopped. Only tools have an id and
// a name; a signature is nothing that is shown.
func readBlock(s *scan, c *Choice) (finish Text) {
	*c = Choice{}
	if !s.enter('{') {
		s.skip()
		return nil
	}
	var text, thinking, tool bool
	for s.more('}') {
		switch string(s.key()) {
		case "text":
			isText := s.peek() == '"'
			text = s.shown()
			c.EmptyText = isText && !text
		case "thinking":
			thinking = s.shown()
		case "id", "name", "partial_json":
			tool = s.shown() || tool
		case "stop_reason":
			finish = s.str()
		default:
			s.skip()
		}
	}
	if thinking {
		c.Visible |= Reasoning
	}
	if text {
		c.Visible |= Content
	}
	if tool {
		c.Visible |= Tool
	}
	return finish
}

// read reads the object "message", whose id and model are the response's.
func (m *message) read(f *Facts, s *scan) {
	*m = message{}
	if !s.enter('{') {
		s.skip()
		return
	}
	for s.more('}') {
		m.member(f, s, s.key())
	}
}

// member reads the value of one of its members.
func (m *message) member(f *Facts, s *scan, key []byte) {
	switch string(key) {
	case "id":
		f.ID = s.str()
	case "model":
		f.Model = s.str()
	case "content":
		m.present = s.peek() == '['
		s.skip()
	case "stop_reason":
		m.finish = s.str()
	case "usage":
		readMessageUsage(s, &m.usage)
	default:
		s.skip()
	}
}

// readMessageUsage reads a usage whose prompt tokens are told in parts.
func readMessageUsage(s *scan, u *Usage) {
	*u = Usage{}
	if !s.enter('{') {
		s.skip()
		return
	}
	u.Present, u.Apart = true, true
	for s.more('}') {
		switch string(s.key()) {
		case "input_tokens":
			u.Prompt = s.number()
		case "output_tokens":
			u.Completion = s.number()
		case "cache_read_input_tokens":
			u.Cached = s.number()
		case "cache_creation_input_tokens":
			u.Created = s.number()
		default:
			s.skip()
		}
	}
}

// messagesBody reads a whole answer, or an error.
func messagesBody(f *Facts, data []byte) bool {
	f.scan = scan{b: data}
	s := &f.scan
	s.enter('{') // what is pruned is an object
	var m message
	var typeIsError bool
	for s.more('}') {
		switch key := s.key(); string(key) {
		case "error":
			readError(s, &f.Error)
		case "type", "object":
			typeIsError = string(s.str()) == typeError || typeIsError
		default:
			m.member(f, s, key)
		}
	}
	ok := s.end()
	s.b = nil
	f.Usage = m.usage
	f.Usage.Final = f.Usage.Present
	f.Error.Set = f.Error.Set || typeIsError
	if m.present {
		f.Choices = append(f.Choices, Choice{Finish: m.finish})
	}
	return ok
}

// keepMessages leaves what messagesBody reads.
func keepMessages(in place, key []byte) (place, bool) {
	switch in {
	case placeTop:
		switch string(key) {
		case "content":
			return placeNothing, true
		case "id", "model", "stop_reason", "usage", "error", "type", "object":
			return placeWhole, true
		}
	case placeWhole:
		return placeWhole, true
	}
	return placeNothing, false
}

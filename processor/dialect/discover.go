package dialect

import "bytes"

// Discover returns the dialect that a stream's first event is of, on a path that
// tells none; Unknown where the event does not tell either. An error has one
// form in most dialects, and is read as chat's.
func Discover(eventType, data []byte) Dialect {
	e := firstEvent{kind: eventType}
	if !e.read(data) {
		if string(eventType) == typeError {
			return Chat
		}
		return Unknown
	}
	switch {
	case e.rpc:
		return Unknown
	case bytes.HasPrefix(e.kind, prefixResponse):
		return Responses
	case string(e.kind) == "message_start":
		return Messages
	}
	switch string(e.object) {
	case "chat.completion.chunk":
		return Chat
	case "text_completion":
		return Completions
	case "transcription.chunk", "translation.chunk":
		return Transcription
	}
	switch {
	case e.ids && e.requestID:
		return Generate
	case e.delta:
		return Chat
	case e.text:
		return Completions
	case !e.choices && (e.failure.Set || string(e.kind) == typeError || string(e.object) == typeError):
		return Chat
	}
	return Unknown
}

// firstEvent is what tells dialects apart.
type firstEvent struct {
	kind, object []byte
	requestID    bool
	failure      Error
	choices      bool
	// delta, text and ids: the first choice has one.
	delta, text, ids bool
	// rpc: it is JSON-RPC, whose errors look like ours.
	rpc bool
}

func (e *firstEvent) read(data []byte) bool {
	s := scan{b: data}
	if !s.enter('{') {
		return false
	}
	for s.more('}') {
		switch string(s.key()) {
		case "type":
			if t := s.name(); len(t) > 0 {
				e.kind = t
			}
		case "object":
			e.object = s.name()
		case "request_id":
			e.requestID = len(s.str()) > 0
		case "error":
			readError(&s, &e.failure)
		case "choices":
			e.firstChoice(&s)
		case "jsonrpc":
			e.rpc = true
			s.skip()
		default:
			s.skip()
		}
	}
	return s.end()
}

// firstChoice reads which members the first choice has.
func (e *firstEvent) firstChoice(s *scan) {
	if !s.enter('[') {
		s.skip()
		return
	}
	for s.more(']') {
		first := !e.choices
		e.choices = true
		if !first || !s.enter('{') {
			s.skip()
			continue
		}
		for s.more('}') {
			switch string(s.key()) {
			case "delta":
				e.delta = s.peek() == '{'
			case "text":
				e.text = s.peek() == '"'
			case "token_ids":
				e.ids = s.peek() == '['
			}
			s.skip()
		}
	}
}

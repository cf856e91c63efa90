package dialect

import "bytes"

// The events of /v1/responses, each with a type: by the event's name, by its
// data, or by both. Lifecycle events are no evidence, whatever text they repeat:
// only deltas are, and a tool's name where it first appears.

const (
	typeCompleted  = "response.completed"
	typeIncomplete = "response.incomplete"
	typeFailed     = "response.failed"
)

var (
	prefixResponse = []byte("response.")
	suffixDelta    = []byte(".delta")
	suffixDone     = []byte(".done")
)

// responsesRead is what an event says before its type is known: members come in
// any order.
type responsesRead struct {
	kind         []byte
	delta, empty bool
	logprobs     int
	called       bool // a tool's name or arguments are shown
	call         Count
	response     response
	code         Text
}

// response is the object "response", or a whole answer.
type response struct {
	present        bool
	status, reason Text
	usage          Usage
	metrics        Metrics
	failure        Error
}

// responsesEvent reads one event.
func responsesEvent(f *Facts, eventType, data []byte) bool {
	f.scan = scan{b: data}
	s := &f.scan
	if !s.enter('{') {
		return false
	}
	r := responsesRead{kind: eventType}
	for s.more('}') {
		switch string(s.key()) {
		case "type":
			if t := s.name(); len(t) > 0 {
				r.kind = t
			}
		case "delta":
			isText := s.peek() == '"'
			r.delta = s.shown()
			r.empty = isText && !r.delta
		case "logprobs":
			r.logprobs = s.count()
		case "output_index":
			r.call = s.number()
		case "item":
			r.called = calledFunction(s)
		case "response":
			r.response.read(f, s)
		case "error":
			readError(s, &f.Error)
		case "code":
			r.code = s.scalar()
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
func (r *responsesRead) say(f *Facts) {
	if string(r.kind) == typeError && !f.Error.Set {
		f.Error = Error{Set: true, Code: r.code}
	}
	if !bytes.HasPrefix(r.kind, prefixResponse) {
		return
	}
	f.Choices = append(f.Choices, Choice{})
	c := &f.Choices[0]
	switch {
	case bytes.HasSuffix(r.kind, suffixDelta):
		c.EmptyText, c.Logprobs = r.empty, r.logprobs
		if r.delta {
			c.Visible = deltaKind(r.kind)
		}
	case r.called && string(r.kind) == "response.output_item.added":
		c.Visible = Tool
	case r.called && bytes.HasSuffix(r.kind, suffixDone):
		c.Visible, c.Ended = Tool, true
	}
	if c.Visible == Tool {
		c.Call = r.call
	}
	switch string(r.kind) {
	case typeFailed:
		f.Error = r.response.failure
		f.Error.Set = true
	case typeCompleted, typeIncomplete:
		f.Done = true
	default:
		return
	}
	f.Usage, f.Metrics = r.response.usage, r.response.metrics
	c.Finish = r.response.finish()
}

// deltaKind is the kind of text that a delta brings: by its type, in which the
// calls of any tool are named as calls.
func deltaKind(kind []byte) Kinds {
	switch {
	case bytes.Contains(kind, []byte("reasoning")):
		return Reasoning
	case bytes.Contains(kind, []byte("_call")):
		return Tool
	default:
		return Content
	}
}

// read reads the object "response", whose id and model are the response's.
func (r *response) read(f *Facts, s *scan) {
	*r = response{}
	if !s.enter('{') {
		s.skip()
		return
	}
	for s.more('}') {
		r.member(f, s, s.key())
	}
}

// member reads the value of one of its members.
func (r *response) member(f *Facts, s *scan, key []byte) {
	switch string(key) {
	case "id":
		f.ID = s.str()
	case "model":
		f.Model = s.str()
	case "status":
		r.status = s.str()
	case "output":
		r.present = s.peek() == '['
		s.skip()
	case "incomplete_details":
		r.reason = s.textIn("reason")
	case "usage":
		readInputOutput(s, &r.usage)
		r.usage.Final = r.usage.Present
	case "metrics":
		readMetrics(s, &r.metrics)
	case "error":
		readError(s, &r.failure)
	default:
		s.skip()
	}
}

// finish is why the response ended; nothing while it has not.
func (r *response) finish() Text {
	if len(r.reason) > 0 {
		return r.reason
	}
	switch string(r.status) {
	case "queued", "in_progress":
		return nil
	}
	return r.status
}

// responsesBody reads a whole answer, or an error.
func responsesBody(f *Facts, data []byte) bool {
	f.scan = scan{b: data}
	s := &f.scan
	s.enter('{') // what is pruned is an object
	var r response
	var flat flatError
	for s.more('}') {
		switch key := s.key(); string(key) {
		case "object":
			flat.object(s)
		case "type":
			flat.kind(s)
		case "code":
			flat.Code = s.scalar()
		default:
			r.member(f, s, key)
		}
	}
	ok := s.end()
	s.b = nil
	f.Usage, f.Metrics, f.Error = r.usage, r.metrics, r.failure
	if !f.Error.Set && flat.Set {
		f.Error = flat.Error
	}
	f.Error.Set = f.Error.Set || string(r.status) == "failed"
	if r.present {
		f.Choices = append(f.Choices, Choice{Finish: r.finish()})
	}
	return ok
}

// keepResponses leaves what responsesBody reads.
func keepResponses(in place, key []byte) (place, bool) {
	switch in {
	case placeTop:
		switch string(key) {
		case "output":
			return placeNothing, true
		case "id", "model", "status", "incomplete_details", "usage", "metrics", "error", "object", "type", "code":
			return placeWhole, true
		}
	case placeWhole:
		return placeWhole, true
	}
	return placeNothing, false
}

// readInputOutput reads a usage that counts input and output; null and what is
// no object are none.
func readInputOutput(s *scan, u *Usage) {
	*u = Usage{}
	if !s.enter('{') {
		s.skip()
		return
	}
	u.Present = true
	for s.more('}') {
		switch string(s.key()) {
		case "input_tokens":
			u.Prompt = s.number()
		case "output_tokens":
			u.Completion = s.number()
		case "input_tokens_details":
			u.Cached = s.numberIn("cached_tokens")
		case "output_tokens_details":
			u.Reasoning = s.numberIn("reasoning_tokens")
		default:
			s.skip()
		}
	}
}

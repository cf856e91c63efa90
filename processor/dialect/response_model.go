package dialect

// NewRestorer returns a Rewriter that gives the model of a response another name:
// of one JSON text of dialect d, which is a whole answer or one event's data.
// Renamed are the strings "model" at the top level, and in the "response" of an
// event of responses and the "message" of one of messages. Null stays.
func NewRestorer(d Dialect, name string) *Rewriter {
	s := &Scanner{response: true}
	s.restart(d)
	return newRewriter(s, Edit{Model: name, SetModel: true})
}

// Restart begins another text of a response, after what is held back of the last
// was taken by Close or is not there. Its memory is used again.
func (w *Rewriter) Restart() {
	w.scanner.restart(w.scanner.request.Dialect)
	w.held, w.dropping = w.held[:0], false
}

// Held tells whether the end of what was written is not given out yet, because it
// may be of a model's name.
func (w *Rewriter) Held() bool { return w.dropping || len(w.held) > 0 }

// restart makes s read another text of a response.
func (s *Scanner) restart(d Dialect) {
	*s = Scanner{
		response: true,
		// The last model is most likely the next one too.
		request: Request{Dialect: d, N: -1, MaxTokens: -1, Model: s.request.Model},
		bodyEnd: -1,
		models:  modelValues{open: -1, long: -1, all: true, ended: s.models.ended[:0]},
		token:   scanText{b: s.token.b[:0]},
	}
}

// responseField returns what the member named key of a response means in c.
func (c scanContainer) responseField(d Dialect, key []byte) member {
	switch string(key) {
	case "model":
		if c == inBody || c == inAnswer {
			return fieldModel
		}
	case "response":
		if c == inBody && d == Responses {
			return fieldAnswer
		}
	case "message":
		if c == inBody && d == Messages {
			return fieldAnswer
		}
	}
	return fieldNone
}

package dialect

const (
	// MaxModel is the longest model name, in bytes, that is kept.
	MaxModel = 1 << 10
	// maxScalar bounds every other name and value that matters; all are shorter.
	maxScalar = 64
)

// Scanner reads a request body while its bytes pass: of the top level of JSON, or
// the fields of a multipart form, the values that [Request] has. It holds one name or value at a time, so its
// memory does not grow with the body, and it never fails: what was read before
// a body breaks off, or stops being JSON, stays. It is not safe for concurrent
// use.
//
// As in vLLM, the last of several members with one name wins, and a boolean or
// a number may come as a string. A value of a wrong type counts as absent.
type Scanner struct {
	request             Request
	maxTokens           int64 // -1: absent
	maxCompletionTokens int64 // -1: absent
	isObject            bool
	modelTooLong        bool

	offset int64 // of the current piece in the body
	state  scanState
	in     scanContainer
	field  member // whose value is being read, or comes next
	nested int    // depth inside a value that is skipped
	bom    int    // bytes of a byte order mark seen

	// Where the next quote and backslash stand in the current piece, its length
	// for none; outdated when below the position. Each byte is looked at once
	// for each, however many there are.
	quote, slash int

	token scanText
	// form reads a multipart form; nil: the body is to be JSON.
	form *formReader

	models modelValues

	// What the asker needs: the last top-level stream_options, where the body's
	// own closing brace stands (-1: not seen), and what a server may make more
	// than one choice of.
	options scanOptions
	bodyEnd int64
	beam    bool
	prompts int // in lists of prompts, those that are not token ids of one
	// prompting: the container that is skipped is a list of prompts or token ids.
	prompting bool

	prompt  promptReader
	session string
	// response: what is read is a response, of which only the model matters.
	response bool
	piece    []byte // in hand
}

// bodySpan is a part of a body, from start up to end.
type bodySpan struct{ start, end int64 }

// NewScanner returns a Scanner for the body of a request of dialect d, which is
// JSON unless its content type says multipart/form-data. Of a form it reads the
// fields "model", "stream", "stream_include_usage" and
// "stream_continuous_usage_stats".
func NewScanner(d Dialect, contentType string) *Scanner {
	return &Scanner{
		form:      newForm(contentType),
		request:   Request{Dialect: d, N: -1, MaxTokens: -1},
		maxTokens: -1, maxCompletionTokens: -1,
		bodyEnd: -1,
		models:  modelValues{open: -1, long: -1},
		prompt:  newPromptReader(d),
	}
}

// Write takes the next bytes of the body, cut anywhere, and keeps no reference
// to them.
func (s *Scanner) Write(piece []byte) {
	s.quote, s.slash = -1, -1
	s.piece = piece
	for i := 0; i < len(piece) && s.state != stateOver; {
		if s.form != nil {
			i = s.readForm(piece, i)
		} else {
			i = s.step(piece, i)
		}
	}
	s.prompt.goesOn(piece, s.offset)
	s.piece = nil
	s.offset += int64(len(piece))
}

// Close ends the body. A value that the end cut off counts as not there.
func (s *Scanner) Close() {
	s.models.open, s.models.long = -1, -1
	s.state = stateOver
}

// Request returns what was read so far.
func (s *Scanner) Request() Request {
	r := s.request
	r.MaxTokens = s.maxTokens
	if s.maxCompletionTokens >= 0 {
		r.MaxTokens = s.maxCompletionTokens
	}
	return r
}

// IsForm tells whether the body is read as a multipart form.
func (s *Scanner) IsForm() bool { return s.form != nil }

// IsObject tells whether the body begins as a JSON object.
func (s *Scanner) IsObject() bool { return s.isObject }

// HasOptions tells whether the body has a top-level "stream_options" that is not
// null.
func (s *Scanner) HasOptions() bool {
	return s.options.kind != optionsAbsent && s.options.kind != optionsNull
}

// ModelKnown tells whether a top-level model name has been read, and nothing in
// its place since. A later member of the same name can still change it.
func (s *Scanner) ModelKnown() bool { return s.request.HasModel }

// ModelTooLong tells whether the model name is longer than [MaxModel]; the
// request then has its beginning.
func (s *Scanner) ModelTooLong() bool { return s.modelTooLong }

// Finished tells that no further byte can change what was read: the object or
// form has ended, the body is none, or it broke off.
func (s *Scanner) Finished() bool { return s.state == stateOver }

package dialect

import "bytes"

// api is how one dialect is read.
type api struct {
	// event reads one event into f, which is empty, and tells whether it could.
	event func(f *Facts, eventType, data []byte) bool
	// body reads a JSON body that was pruned by keep.
	body func(f *Facts, data []byte) bool
	// keep tells which parts of a body matter.
	keep keep
}

// apis has the dialects that are read. One more is a file beside this one and
// a line here.
var apis = [...]api{
	Chat: {
		event: func(f *Facts, eventType, data []byte) bool { return openAIEvent(f, eventType, data, chatChoice) },
		body:  func(f *Facts, data []byte) bool { return openAIObject(f, data, chatChoice) },
		keep:  keepOpenAI,
	},
	Completions: {
		event: func(f *Facts, eventType, data []byte) bool { return openAIEvent(f, eventType, data, completionsChoice) },
		body:  func(f *Facts, data []byte) bool { return openAIObject(f, data, completionsChoice) },
		keep:  keepOpenAI,
	},
}

// Known tells whether the dialect is one that is read.
func (d Dialect) Known() bool { return int(d) < len(apis) && apis[d].event != nil }

// Read reads one event into f, whatever was in it before. The dialect must be
// Known.
func (d Dialect) Read(f *Facts, eventType, data []byte) {
	f.Reset()
	if len(eventType) == 0 && f.forms.read(d, f, data) {
		return
	}
	if !apis[d].event(f, eventType, data) {
		f.Reset()
		f.Skipped = true
		return
	}
	if len(eventType) == 0 && !f.Done {
		f.forms.learn(f, data)
	}
}

// IsDone tells whether an event's data is the end mark that is not JSON.
func IsDone(data []byte) bool {
	return len(data) < maxScalar && string(bytes.TrimSpace(data)) == "[DONE]"
}

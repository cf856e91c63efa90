package dialect

import (
	"bytes"
	"strings"
)

// api is how one dialect is read.
type api struct {
	// event reads one event into f, which is empty, and tells whether it could.
	event func(f *Facts, eventType, data []byte) bool
	// body reads a JSON body that was pruned by keep.
	body func(f *Facts, data []byte) bool
	// keep tells which parts of a body matter.
	keep keep
	// plain are the media types, beside JSON, of answers that say nothing that is
	// measured.
	plain []string
}

// apis has the dialects that are read. One more is a file beside this one and
// a line here.
var apis = [...]api{
	Chat:          {event: chat.event, body: chat.read, keep: keepOpenAI},
	Completions:   {event: completions.event, body: completions.read, keep: keepOpenAI},
	Responses:     {event: responsesEvent, body: responsesBody, keep: keepResponses},
	Messages:      {event: messagesEvent, body: messagesBody, keep: keepMessages},
	Transcription: {event: transcription.event, body: transcriptionBody, keep: keepTranscription, plain: plainTranscription},
	Generate:      {event: generate.event, body: generate.read, keep: keepGenerate},
	Pooling:       {event: pooling.event, body: poolingBody, keep: keepPooling, plain: plainPooling},
}

// Known tells whether the dialect is one that is read.
func (d Dialect) Known() bool { return int(d) < len(apis) && apis[d].event != nil }

// Streams tells whether a response of the dialect can be a stream.
func (d Dialect) Streams() bool { return d.Known() && d != Pooling }

// Plain tells whether a response of this content type, without its parameters,
// is an answer of the dialect that says nothing that is measured.
func (d Dialect) Plain(mediaType string) bool {
	if !d.Known() {
		return false
	}
	for _, t := range apis[d].plain {
		if strings.EqualFold(t, mediaType) {
			return true
		}
	}
	return false
}

// Read reads one event into f, whatever was in it before. The dialect must be
// Known.
func (d Dialect) Read(f *Facts, eventType, data []byte) {
	f.Reset()
	if len(eventType) == 0 && f.forms.read(d, f, data) {
		return
	}
	if IsDone(data) {
		f.Done = true
		return
	}
	ok := apis[d].event(f, eventType, data)
	if !ok {
		f.Reset()
	}
	switch {
	case string(eventType) == typeError:
		f.Error.Set = true
	case !ok:
		f.Skipped = true
	case len(eventType) == 0 && !f.Done:
		f.forms.learn(f, data)
	}
}

// typeError is the type of an event that is an error, by the name of the event
// or by its data.
const typeError = "error"

// IsDone tells whether an event's data is the end mark that is not JSON.
func IsDone(data []byte) bool {
	return len(data) < maxScalar && string(bytes.TrimSpace(data)) == "[DONE]"
}

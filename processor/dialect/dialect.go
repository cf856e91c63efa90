// Package dialect turns one server-sent event, or one JSON body, into facts:
// role, text, reasoning, tool call, usage, finish, error, done, keep-alive.
// It has one file per API. It also reads what a request asked for, while the
// request's bytes pass.
//
// It knows nothing of time, of HTTP phases or of telemetry.
package dialect

// Dialect is one API's wire form.
type Dialect uint8

// The dialects. Unknown is every path that none of the others serves: its
// exchanges pass and are counted, and nothing is read from their bodies.
const (
	Unknown Dialect = iota
	Chat
	Completions
	// Responses and Messages name their events, and have one choice.
	Responses
	Messages
	// Transcription is transcriptions and translations of audio.
	Transcription
	// Generate is token ids in, token ids out.
	Generate
	// Pooling is all that answers with numbers and never streams: embeddings,
	// pooling, classification, scores and rankings.
	Pooling
)

// Request is what a client asked for, as far as the measuring needs it: read
// from the top level of the request's JSON body, or from the fields of its form,
// never its content.
type Request struct {
	// Dialect follows from the path.
	Dialect Dialect
	// Model is the top-level "model". HasModel tells an empty name from none.
	Model    string
	HasModel bool
	// Stream, N, MaxTokens, Echo and the rest are absent (zero, and -1 for the
	// numbers) where the body does not name them. Responses call MaxTokens by a
	// name of their own, and generate keeps it and N among its sampling_params.
	Stream          bool
	IncludeUsage    bool
	ContinuousUsage bool
	N               int64
	MaxTokens       int64
	Echo            bool
	// NoGenerationPrompt is true when "add_generation_prompt" is false.
	NoGenerationPrompt bool
	// LastRole is the role of the last message of "messages".
	LastRole string
}

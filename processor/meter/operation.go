package meter

import "github.com/inferspan/inferspan/processor/dialect"

// OperationOther is the operation of a path that no other operation names.
const OperationOther = "other"

// operations are the operations of paths. The values chat, text_completion and
// embeddings are the GenAI conventions', the others ours.
var operations = map[string]string{
	"/v1/chat/completions":      "chat",
	"/v1/responses":             "chat",
	"/v1/messages":              "chat",
	"/v1/completions":           "text_completion",
	"/inference/v1/generate":    "text_completion",
	"/v1/embeddings":            "embeddings",
	"/v1/audio/transcriptions":  "transcription",
	"/v1/audio/translations":    "translation",
	"/v1/messages/count_tokens": "tokenize",
	"/tokenize":                 "tokenize",
	"/detokenize":               "tokenize",
	"/rerank":                   "rerank",
	"/v1/rerank":                "rerank",
	"/v2/rerank":                "rerank",
	"/score":                    "score",
	"/v1/score":                 "score",
	"/pooling":                  "pooling",
	"/classify":                 "classify",
	"/v1/models":                "models",
}

// Operation names what a request to path asks for, as spans and metrics show it:
// one of a fixed set, whatever the path. It is known at the request, so that it
// does not depend on what the response turns out to be.
func Operation(path string) string {
	if op, ok := operations[dialect.Endpoint(path)]; ok {
		return op
	}
	return OperationOther
}

// Operation names what the exchange's request asked for.
func (r *Record) Operation() string { return Operation(r.Path) }

package meter

import "github.com/inferspan/inferspan/processor/dialect"

// OperationOther is the operation of a path that no other operation names.
const OperationOther = "other"

// operations are the operations of paths that no dialect reads. The values chat,
// text_completion and embeddings are the GenAI conventions', the others ours.
var operations = map[string]string{
	"/v1/responses":             "chat",
	"/v1/messages":              "chat",
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

// Operation names what a request asks for, as spans and metrics show it: one
// of a fixed set, whatever the path.
func Operation(d dialect.Dialect, path string) string {
	switch d {
	case dialect.Chat:
		return "chat"
	case dialect.Completions:
		return "text_completion"
	}
	if op, ok := operations[path]; ok {
		return op
	}
	return OperationOther
}

// Operation names what the exchange's request asked for.
func (r *Record) Operation() string { return Operation(r.Dialect, r.Path) }

package meter

import "testing"

func TestClass(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		status  int
		want    Class
	}{
		{OK, 200, ClassDone}, {OKNoFinish, 200, ClassDone}, {ClientCancelledAfterFinish, 200, ClassDone},
		{ClientCancelled, 200, ClassCancelled}, {Aborted, 200, ClassCancelled},
		{ErrorInStream, 200, ClassFailed}, {UpstreamReset, 200, ClassFailed}, {Timeout, 0, ClassFailed},
		{Empty, 200, ClassFailed}, {Truncated, 200, ClassFailed},
		{HTTPError, 500, ClassFailed}, {HTTPError, 429, ClassFailed}, {HTTPError, 404, ClassRefused},
		{Rejected, 404, ClassRejected}, {Lost, 200, ClassUnknown}, {Unparsed, 200, ClassUnknown},
	} {
		if got := c.outcome.Class(c.status); got != c.want {
			t.Errorf("Outcome(%s).Class(%d) = %s, want %s", c.outcome, c.status, got, c.want)
		}
	}
}

func TestOperation(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions":          "chat",
		"/team-a/v1/chat/completions?x": "chat",
		"/v1/completions":               "text_completion",
		"/v1/responses":                 "chat",
		"/v1/messages?beta=true":        "chat",
		"/v1/messages/count_tokens":     "tokenize",
		"/inference/v1/generate":        "text_completion",
		"/tiny/inference/v1/generate":   "text_completion",
		"/v1/embeddings":                "embeddings",
		"/openai/v1/embeddings":         "embeddings",
		"/v1/audio/transcriptions":      "transcription",
		"/v1/audio/translations":        "translation",
		"/v2/rerank":                    "rerank",
		"/score":                        "score",
		"/pooling":                      "pooling",
		"/classify":                     "classify",
		"/v1/responses/resp_1":          "other",
		"/made/up/7f3a":                 "other",
		"":                              "other",
	} {
		if got := Operation(path); got != want {
			t.Errorf("Operation(%q) = %s, want %s", path, got, want)
		}
	}
}

package dialect

import "testing"

func TestDiscover(t *testing.T) {
	t.Parallel()
	f := func(eventType, data string, want Dialect) {
		t.Helper()
		if got := Discover([]byte(eventType), []byte(data)); got != want {
			t.Errorf("%s %s: dialect %d, want %d", eventType, data, got, want)
		}
	}
	f("", `{"object":"chat.completion.chunk","choices":[]}`, Chat)
	f("", `{"choices":[{"index":0,"delta":{}},{"text":"x"}]}`, Chat)
	f("", `{"object":"text_completion"}`, Completions)
	f("", `{"choices":[{"text":""}]}`, Completions)
	f("", `{"choices":[{"text":"a","token_ids":[1]}]}`, Completions)
	f("", `{"object":"transcription.chunk","choices":[{"delta":{}}]}`, Transcription)
	f("", `{"object":"translation.chunk"}`, Transcription)
	f("", `{"request_id":"g","choices":[{"token_ids":[]}]}`, Generate)
	f("", `{"type":"response.created","response":{}}`, Responses)
	f("response.created", `{"response":{}}`, Responses)
	f("message_start", `{}`, Messages)
	f("", `{"type":"message_start"}`, Messages)
	f("error", `boom`, Chat)
	f("error", `{}`, Chat)
	f("", `{"type":"error"}`, Chat)
	f("", `{"object":"error"}`, Chat)
	f("", `{"error":"Unauthorized"}`, Chat)
	f("", `{"error":{"code":1},"jsonrpc":"2.0"}`, Unknown)
	f("", `{"error":{"code":1},"choices":[3]}`, Unknown)
	f("", `{"error":null}`, Unknown)
	f("ping", `{"type":"ping"}`, Unknown)
	f("", `{"choices":"x","object":7,"type":""}`, Unknown)
	f("", `{"choices":[]}`, Unknown)
	f("", `{"choices":[{"delta":{}}]`, Unknown)
	f("", `[DONE]`, Unknown)
	f("", `plain text`, Unknown)
}

package dialect

import (
	"reflect"
	"testing"
)

func TestOtherChoices(t *testing.T) {
	t.Parallel()
	f := func(name string, d Dialect, data string, want Facts) {
		t.Helper()
		if got := read(d, "", data); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	f("audio without an index", Transcription, `{"id":"trsc-1","choices":[{"delta":{"role":"assistant","content":" a"},"finish_reason":"stop"}]}`,
		Facts{ID: Text("trsc-1"), Choices: []Choice{{Visible: Content, Finish: Text("stop")}}})
	f("generate", Generate, `{"request_id":"g","id":"x","choices":[{"index":1,"token_ids":[1,2],"logprobs":{"content":[{},{}]},"finish_reason":"length","routed_experts":null}]}`,
		Facts{ID: Text("g"), Choices: []Choice{{Index: 1, Visible: Token, IDs: 2, IDList: []byte("1,2"), Logprobs: 2, Finish: Text("length")}}})
	f("generate with text", Generate, `{"choices":[{"token_ids":[1],"text":"a"}]}`, Facts{Choices: []Choice{{Visible: Content | Token, IDs: 1, IDList: []byte("1")}}})
	f("generate without tokens", Generate, `{"choices":[{"token_ids":null}]}`, Facts{Choices: []Choice{{}}})
	f("pooling has no choices", Pooling, `{"id":"e","choices":[{"index":0}]}`, Facts{ID: Text("e"), Unread: 1})
	f("a chat is not named by its request", Chat, `{"request_id":"g"}`, Facts{})
}

func TestOtherBodies(t *testing.T) {
	t.Parallel()
	f := func(name string, d Dialect, data string, want Facts) {
		t.Helper()
		for _, size := range []int{1, len(data)} {
			if got := bodyFacts(t, d, []byte(data), size); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
			}
		}
	}
	n := func(n int64) Count { return Count{N: n, OK: true} }
	f("response", Responses, `{"id":"r","object":"response","error":null,"model":"m","output":[{"content":[{"text":"x"}]}],"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}`,
		Facts{ID: Text("r"), Model: Text("m"), Choices: []Choice{{Finish: Text("completed")}}, Usage: Usage{Present: true, Final: true, Prompt: n(1), Completion: n(2)}})
	f("queued", Responses, `{"output":[],"status":"queued"}`, Facts{Choices: []Choice{{}}})
	f("in progress", Responses, `{"output":[],"status":"in_progress"}`, Facts{Choices: []Choice{{}}})
	f("failed", Responses, `{"output":[],"status":"failed"}`, Facts{Error: Error{Set: true}, Choices: []Choice{{Finish: Text("failed")}}})
	f("old error", Responses, `{"object":"error","type":"NotFoundError","code":404}`, Facts{Error: Error{Set: true, Type: Text("NotFoundError"), Code: Text("404")}})
	f("error type", Responses, `{"type":"error","code":"c"}`, Facts{Error: Error{Set: true, Code: Text("c")}})
	f("error", Responses, `{"error":{"type":"t"}}`, Facts{Error: Error{Set: true, Type: Text("t")}})
	f("message", Messages, `{"id":"m","type":"message","content":[{"type":"text","text":"x"}],"model":"x","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`,
		Facts{ID: Text("m"), Model: Text("x"), Choices: []Choice{{Finish: Text("end_turn")}}, Usage: Usage{Present: true, Final: true, Apart: true, Prompt: n(1), Completion: n(2)}})
	f("message's error", Messages, `{"type":"error","error":{"type":"t"}}`, Facts{Error: Error{Set: true, Type: Text("t")}})
	f("message's old error", Messages, `{"object":"error"}`, Facts{Error: Error{Set: true}})
	f("audio", Transcription, `{"text":"","usage":{"type":"duration","seconds":1}}`, Facts{Answer: true, Usage: Usage{Present: true}})
	f("audio without text", Transcription, `{"text":null}`, Facts{})
	f("embeddings", Pooling, `{"data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":3}}`, Facts{Answer: true, Usage: Usage{Present: true, Prompt: n(3)}})
	f("ranking", Pooling, `{"results":[]}`, Facts{Answer: true})
	f("pooling with choices", Pooling, `{"choices":[{"finish_reason":"x"}]}`, Facts{})
	f("generate", Generate, `{"request_id":"g","choices":[{"index":0,"token_ids":[1],"finish_reason":"stop"}]}`, Facts{ID: Text("g"), Choices: []Choice{{Finish: Text("stop")}}})
	for _, d := range all {
		f("no object", d, `[{}]`, Facts{Skipped: true})
		f("cut off", d, `{"id":"x"`, Facts{Skipped: true})
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, d := range append(all, Unknown, 200) {
		if got, want := d.Plain("Application/Octet-Stream"), d == Pooling; got != want {
			t.Errorf("dialect %d: bytes are an answer: %t", d, got)
		}
		if got, want := d.Plain("text/plain"), d == Transcription; got != want {
			t.Errorf("dialect %d: text is an answer: %t", d, got)
		}
		if d.Plain("text/html") || d.Plain("") {
			t.Errorf("dialect %d: anything is an answer", d)
		}
		if got, want := d.Streams(), d != Pooling && d.Known(); got != want {
			t.Errorf("dialect %d streams: %t", d, got)
		}
	}
}

func TestSpeculativeDecoding(t *testing.T) {
	t.Parallel()
	f := func(value, want string) {
		t.Helper()
		got := read(Chat, "", `{"metrics":{"speculative_decoding":`+value+`}}`)
		if s := string(got.Metrics.SpeculativeDecoding); s != want {
			t.Errorf("%s: got %q, want %q", value, s, want)
		}
	}
	f(`{"a":[1,{}]}`, `{"a":[1,{}]}`)
	f(` null `, `null`)
	f(`[1]`, ``)
	f(`"x"`, ``)
	f(`7`, ``)
	f(`{`, ``)
}

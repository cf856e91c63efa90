package dialect

import (
	"reflect"
	"testing"
)

func TestCompletions(t *testing.T) {
	t.Parallel()
	f := func(name, data string, want Choice) {
		t.Helper()
		got := read(Completions, "", data)
		if !reflect.DeepEqual(got.Choices, []Choice{want}) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got.Choices, want)
		}
	}
	f("text", `{"choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}],"usage":null}`, Choice{Visible: Content})
	f("empty text", `{"choices":[{"text":""}]}`, Choice{EmptyText: true})
	f("null text", `{"choices":[{"text":null}]}`, Choice{})
	f("no text", `{"choices":[{}]}`, Choice{})
	f("finish", `{"choices":[{"text":"a","finish_reason":"length"}]}`, Choice{Visible: Content, Finish: Text("length")})
	f("logprobs", `{"choices":[{"text":"a","logprobs":{"text_offset":[0,1],"token_logprobs":[null,-1],"tokens":["a","["],"top_logprobs":[{"a":-1},{}]}}]}`,
		Choice{Visible: Content, Logprobs: 2})
	f("prompt ids", `{"choices":[{"text":"a","prompt_token_ids":[1,2,3],"token_ids":[4]}]}`,
		Choice{Visible: Content, IDs: 1, IDList: []byte("4"), PromptIDs: Count{N: 3, OK: true}})
	f("no prompt ids", `{"choices":[{"text":"a","prompt_token_ids":null}]}`, Choice{Visible: Content})
	f("a chat's delta", `{"choices":[{"delta":{"content":"a"}}]}`, Choice{})
}

func TestDecode(t *testing.T) {
	t.Parallel()
	f := func(text string, limit int, want string) {
		t.Helper()
		if got := Text(text).Decode(limit); got != want {
			t.Errorf("%s, %d bytes: got %q, want %q", text, limit, got, want)
		}
	}
	f(`plain`, 9, "plain")
	f(`plain`, 3, "pla")
	f(`a\nb\u0041\/`, 9, "a\nbA/")
	f(`\ud83d\ude00`, 9, "\U0001F600")
	f(`\ud83d`, 9, "\uFFFD")
	f(`\ud83d\ude00`, 3, "")
	f(`äöü`, 3, "ä")
	f("a\xff", 9, "a\uFFFD")
	f(`broken\x`, 9, "broken")
	f(``, 9, "")
}

package dialect

import (
	"reflect"
	"testing"
)

// read returns what an event says, without what only reading needs.
func read(d Dialect, eventType, data string) Facts {
	var f Facts
	d.Read(&f, []byte(eventType), []byte(data))
	f.scan, f.forms = scan{}, forms{}
	if len(f.Choices) == 0 {
		f.Choices = nil
	}
	return f
}

func TestChat(t *testing.T) {
	t.Parallel()
	f := func(name, data string, want Facts) {
		t.Helper()
		if got := read(Chat, "", data); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	one := func(c Choice) Facts { return Facts{Choices: []Choice{c}} }
	n := func(n int64) Count { return Count{N: n, OK: true} }

	f("role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		one(Choice{Role: true, EmptyText: true}))
	f("null role", `{"choices":[{"delta":{"role":null,"content":null}}]}`, one(Choice{}))
	f("content", `{"choices":[{"index":1,"delta":{"content":"x"}}]}`, one(Choice{Index: 1, Visible: Content}))
	f("content in parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}`, one(Choice{Visible: Content}))
	f("no content in parts", `{"choices":[{"delta":{"content":[]}}]}`, one(Choice{}))
	f("refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, one(Choice{Visible: Content}))
	f("reasoning", `{"choices":[{"delta":{"reasoning":"x","content":null}}]}`, one(Choice{Visible: Reasoning}))
	f("older reasoning", `{"choices":[{"delta":{"reasoning_content":"x"}}]}`, one(Choice{Visible: Reasoning}))
	f("both names", `{"choices":[{"delta":{"reasoning":"x","reasoning_content":"x"}}]}`, one(Choice{Visible: Reasoning}))
	f("reasoning ends", `{"choices":[{"delta":{"reasoning":"x","content":"y"}}]}`, one(Choice{Visible: Reasoning | Content}))
	f("whole message", `{"choices":[{"message":{"role":"assistant","content":"x"},"delta":null,"finish_reason":"stop"}]}`,
		one(Choice{Role: true, Visible: Content, Finish: Text("stop")}))

	f("tool id", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1"}]}}]}`, one(Choice{Visible: Tool}))
	f("tool name", `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}}]}}]}`, one(Choice{Visible: Tool}))
	f("tool arguments", `{"choices":[{"delta":{"tool_calls":[{},{"function":{"arguments":"{"}}]}}]}`, one(Choice{Visible: Tool}))
	f("arguments as an object", `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`, one(Choice{Visible: Tool}))
	f("old function call", `{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, one(Choice{Visible: Tool}))
	f("tool with nothing", `{"choices":[{"delta":{"tool_calls":[{"index":0,"type":"function","function":{"arguments":""}}]}}]}`, one(Choice{}))
	f("partial tool", `{"choices":[{"delta":{"tool_calls":[{"index":0},null,3]}}]}`, one(Choice{}))
	f("no tools beside content", `{"choices":[{"delta":{"content":"x","tool_calls":[]}}]}`, one(Choice{Visible: Content}))

	f("ids", `{"choices":[{"delta":{},"token_ids":[1, 2]}],"prompt_token_ids":[1,2,3]}`,
		one(Choice{IDs: 2, IDList: []byte("1, 2")}))
	f("no ids", `{"choices":[{"delta":{},"token_ids":[]}]}`, one(Choice{IDList: []byte{}}))
	f("logprobs", `{"choices":[{"delta":{},"logprobs":{"content":[{"token":"]","top_logprobs":[{"bytes":[1]}]},{}],"refusal":null}}]}`,
		one(Choice{Logprobs: 2}))
	f("logprobs of a refusal", `{"choices":[{"delta":{},"logprobs":{"content":null,"refusal":[{}]}}]}`, one(Choice{Logprobs: 1}))
	f("finish", `{"choices":[{"delta":{},"finish_reason":"stop","stop_reason":7}]}`, one(Choice{Finish: Text("stop")}))
	f("empty finish", `{"choices":[{"delta":{},"finish_reason":""}]}`, one(Choice{Finish: Text{}}))

	f("several choices", `{"choices":[{"index":1,"delta":{"content":"a"}},{"index":0,"delta":{"content":""}}]}`,
		Facts{Choices: []Choice{{Index: 1, Visible: Content}, {EmptyText: true}}})
	f("index as text", `{"choices":[{"index":"2","delta":{}}]}`, one(Choice{Index: 2}))
	f("null index", `{"choices":[{"index":null,"delta":{}}]}`, one(Choice{}))
	f("impossible indexes", `{"choices":[{"index":1e9},{"index":-1},{"index":1e999},{"index":0.5},{"index":128},{"index":127}]}`,
		Facts{Choices: []Choice{{Index: 127}}, Unread: 5})
	f("no choices", `{"choices":[null,3,"x",[]]}`, Facts{Unread: 4})

	f("usage", `{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":15,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4,"x":[1]},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		Facts{ID: Text("c"), Model: Text("m"), Usage: Usage{Present: true, Prompt: n(9), Completion: n(6), Cached: n(4), Reasoning: n(2)}})
	f("null usage", `{"choices":[],"usage":null}`, Facts{})
	f("null details", `{"usage":{"prompt_tokens":0,"completion_tokens":null,"prompt_tokens_details":null}}`,
		Facts{Usage: Usage{Present: true, Prompt: n(0)}})
	f("numbers as text and with fractions", `{"usage":{"prompt_tokens":"7","completion_tokens":8.0,"completion_tokens_details":{"reasoning_tokens":"x"}}}`,
		Facts{Usage: Usage{Present: true, Prompt: n(7), Completion: n(8)}})
	f("numbers that are none", `{"usage":{"prompt_tokens":1e999,"completion_tokens":-3,"prompt_tokens_details":{"cached_tokens":1.5}}}`,
		Facts{Usage: Usage{Present: true}})
	f("numbers too large", `{"usage":{"prompt_tokens":9007199254740992,"completion_tokens":9007199254740994}}`,
		Facts{Usage: Usage{Present: true, Prompt: n(1 << 53)}})
	f("usage that is none", `{"usage":"x"}`, Facts{})
	f("the last usage", `{"usage":{"prompt_tokens":1,"completion_tokens":2},"usage":{"completion_tokens":3}}`,
		Facts{Usage: Usage{Present: true, Completion: n(3)}})

	f("error", `{"error": {"message": "m", "type": "GatewayTimeout", "param": null, "code": 504}}`,
		Facts{Error: Error{Set: true, Type: Text("GatewayTimeout"), Code: Text("504")}})
	f("code as text", `{"error":{"code":"server_error"}}`, Facts{Error: Error{Set: true, Code: Text("server_error")}})
	f("error as text", `{"error":"Unauthorized"}`, Facts{Error: Error{Set: true}})
	f("no error", `{"error":null}`, Facts{})
	f("empty error", `{"error":"","choices":[]}`, Facts{})
	f("error with no choices", `{"error":{"type":"x"},"choices":[]}`, Facts{Error: Error{Set: true, Type: Text("x")}})
	f("error beside choices", `{"error":{"type":"x"},"choices":[{"finish_reason":"error"}]}`, one(Choice{Finish: Text("error")}))
	f("old error", `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`,
		Facts{Error: Error{Set: true, Type: Text("BadRequestError"), Code: Text("400")}})
	f("old error inside", `{"error": {"object": "error", "message": "m", "type": "BadRequestError", "code": 400}}`,
		Facts{Error: Error{Set: true, Type: Text("BadRequestError"), Code: Text("400")}})
	f("type error", `{"type":"error","error":{"type":"internal_error"}}`,
		Facts{Error: Error{Set: true, Type: Text("internal_error")}})

	f("metrics", `{"choices":[],"metrics":{"time_to_first_token_ms":1.5,"generation_time_ms":2,"queue_time_ms":null,"mean_itl_ms":"3","tokens_per_second":1e999}}`,
		Facts{Metrics: Metrics{Present: true, TimeToFirstTokenMS: Float{1.5, true}, GenerationTimeMS: Float{2, true}, MeanITLMS: Float{3, true}}})
	f("more metrics", `{"metrics":{"other":[1],"queue_time_ms":1}}`, Facts{Metrics: Metrics{Present: true, QueueTimeMS: Float{1, true}}})
	f("choices that are none", `{"choices":"x"}`, Facts{})
	f("tools that are none", `{"choices":[{"delta":{"tool_calls":"x"}}]}`, one(Choice{}))
	f("code that is none", `{"error":{"code":{"a":1}}}`, Facts{Error: Error{Set: true}})
	f("number with an escape", `{"usage":{"prompt_tokens":"\u0037"}}`, Facts{Usage: Usage{Present: true, Prompt: n(7)}})
	f("null metrics", `{"metrics":null}`, Facts{})

	f("done", `[DONE]`, Facts{Done: true})
	f("done, padded", ` [DONE] `, Facts{Done: true})
	f("done in content", `{"choices":[{"delta":{"content":"[DONE]"}}]}`, one(Choice{Visible: Content}))
	f("usage in content", `{"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":1}}]}"}}]}`, one(Choice{Visible: Content}))
	f("escaped names", `{"ch\u006fices":[{"d\u0065lta":{"conten\u0074":"\u4f60"}}]}`, one(Choice{Visible: Content}))
	f("invalid UTF-8", "{\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}", one(Choice{Visible: Content}))
	f("odd white space", "\t{ \"choices\" :\r\n[ { \"delta\" : { \"content\" : \"x\" } } ] }\n", one(Choice{Visible: Content}))
	f("not a number", `{"choices":[{"delta":{"content":"x"},"logprobs":{"content":[{"logprob":-Infinity},{"logprob":NaN}]}}]}`,
		one(Choice{Visible: Content, Logprobs: 2}))
	f("nothing", `{}`, Facts{})

	skipped := Facts{Skipped: true}
	f("comment as data", `: OPENROUTER PROCESSING`, skipped)
	f("cut off", `{"choices":[{"delta":{"content":"x"}}]`, skipped)
	f("cut in text", `{"choices":[{"delta":{"content":"x`, skipped)
	f("not an object", `[1]`, skipped)
	f("something behind", `{} {}`, skipped)
	f("crossed brackets", `{"x":[{]}}`, skipped)
	f("comma at the end", `{"choices":[],}`, skipped)
	f("no comma", `{"a":1 "b":2}`, skipped)
	f("no colon", `{"a" 1}`, skipped)
	f("no value", `{"a":,"b":1}`, skipped)
}

func TestChatEventType(t *testing.T) {
	t.Parallel()
	if f := read(Chat, "error", `{"message":"m"}`); !f.Error.Set {
		t.Errorf("an event of type error: %+v", f)
	}
	if f := read(Chat, "error", `broken`); !f.Error.Set || f.Skipped {
		t.Errorf("an event of type error that is no JSON: %+v", f)
	}
	if f := read(Chat, "ping", `{}`); f.Error.Set || f.Skipped {
		t.Errorf("a ping: %+v", f)
	}
}

// Nesting deeper than any response's is given up, at whatever depth, and needs
// no stack.
func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		b := make([]byte, 0, 2*n+16)
		b = append(b, `{"x":`...)
		for range n {
			b = append(b, '[')
		}
		for range n {
			b = append(b, ']')
		}
		return string(append(b, '}'))
	}
	if f := read(Chat, "", nested(maxDepth)); f.Skipped {
		t.Errorf("%d deep: skipped", maxDepth)
	}
	for _, n := range []int{maxDepth + 1, 1 << 20} {
		if f := read(Chat, "", nested(n)); !f.Skipped {
			t.Errorf("%d deep: read", n)
		}
	}
}

func TestManyChoices(t *testing.T) {
	t.Parallel()
	data := []byte(`{"choices":[{}`)
	for range 2 * MaxChoices {
		data = append(data, `,{}`...)
	}
	data = append(data, `]}`...)
	if f := read(Chat, "", string(data)); len(f.Choices) != MaxChoices || f.Unread != MaxChoices+1 {
		t.Errorf("%d choices, %d unread", len(f.Choices), f.Unread)
	}
}

// What an event says is not left over for the next.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	var f Facts
	Chat.Read(&f, nil, []byte(`{"id":"a","model":"m","choices":[{"index":3,"delta":{"content":"x"},"token_ids":[1],"finish_reason":"stop"}],"usage":{"prompt_tokens":1},"metrics":{}}`))
	Chat.Read(&f, nil, []byte(`{"choices":[{"delta":{}}]}`))
	if want := (Choice{}); f.ID != nil || f.Usage.Present || f.Metrics.Present || !reflect.DeepEqual(f.Choices, []Choice{want}) {
		t.Errorf("left over: %+v", f)
	}
}

func TestReadAllocates(t *testing.T) {
	var f Facts
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796033984,"model":"tiny","choices":[{"index":0,"delta":{"content":" a\n"},"logprobs":{"content":[{"token":"a","logprob":-8.2,"bytes":[97],"top_logprobs":[]}]},"finish_reason":null,"token_ids":[7]}],"usage":{"prompt_tokens":20,"completion_tokens":3}}`)
	for _, d := range all {
		if n := testing.AllocsPerRun(100, func() { d.Read(&f, nil, data) }); n != 0 {
			t.Errorf("dialect %d: %v allocations an event", d, n)
		}
	}
}

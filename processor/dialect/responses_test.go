package dialect

import (
	"reflect"
	"testing"
)

func TestResponses(t *testing.T) {
	t.Parallel()
	f := func(name, data string, want Facts) {
		t.Helper()
		if got := read(Responses, "", data); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	one := func(c Choice) Facts { return Facts{Choices: []Choice{c}} }
	n := func(n int64) Count { return Count{N: n, OK: true} }

	f("created", `{"response":{"id":"r","model":"m","status":"in_progress","usage":null,"output":[]},"sequence_number":0,"type":"response.created"}`,
		Facts{ID: Text("r"), Model: Text("m"), Choices: []Choice{{}}})
	f("usage before the end", `{"type":"response.in_progress","response":{"usage":{"input_tokens":5,"output_tokens":0}}}`, one(Choice{}))
	f("type last", `{"content_index":0,"delta":" I","output_index":0,"type":"response.output_text.delta"}`, one(Choice{Visible: Content}))
	f("type with escapes", `{"type":"response\u002eoutput_text.delta","delta":"x"}`, one(Choice{Visible: Content}))
	f("empty delta", `{"type":"response.output_text.delta","delta":"","logprobs":[]}`, one(Choice{EmptyText: true}))
	f("delta that is no text", `{"type":"response.output_text.delta","delta":{"text":"x"}}`, one(Choice{}))
	f("logprobs", `{"type":"response.output_text.delta","delta":"ab","logprobs":[{},{}]}`, one(Choice{Visible: Content, Logprobs: 2}))
	f("reasoning", `{"type":"response.reasoning_text.delta","delta":"x"}`, one(Choice{Visible: Reasoning}))
	f("arguments", `{"type":"response.function_call_arguments.delta","delta":"{","output_index":2}`, one(Choice{Visible: Tool, Call: n(2)}))
	f("tool added", `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"f","arguments":""}}`,
		one(Choice{Visible: Tool, Call: n(1)}))
	f("tool done", `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","name":"f"}}`,
		one(Choice{Visible: Tool, Call: n(1), Ended: true}))
	f("message added", `{"type":"response.output_item.added","item":{"type":"message","id":"msg","content":[],"role":"assistant"}}`, one(Choice{}))
	f("part added", `{"type":"response.content_part.added","part":{"text":"x"}}`, one(Choice{}))
	f("text done", `{"type":"response.output_text.done","text":"x","logprobs":[{}]}`, one(Choice{}))
	f("search", `{"type":"response.web_search_call.searching","item_id":"x"}`, one(Choice{}))

	f("completed", `{"type":"response.completed","response":{"id":"r","status":"completed","incomplete_details":null,"error":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"input_tokens_per_turn":[]},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15},"metrics":{"queue_time_ms":1}}}`,
		Facts{
			ID: Text("r"), Done: true, Choices: []Choice{{Finish: Text("completed")}},
			Usage:   Usage{Present: true, Final: true, Prompt: n(9), Completion: n(6), Cached: n(4), Reasoning: n(2)},
			Metrics: Metrics{Present: true, QueueTimeMS: Float{1, true}},
		})
	f("length", `{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"x":1,"reason":"max_output_tokens"}}}`,
		Facts{Done: true, Choices: []Choice{{Finish: Text("max_output_tokens")}}})
	f("incomplete", `{"type":"response.incomplete","response":{"status":"incomplete"}}`, Facts{Done: true, Choices: []Choice{{Finish: Text("incomplete")}}})
	f("members of no use", `{"type":"response.completed","response":{"status":"completed","instructions":[{"id":"x"}]}}`, Facts{Done: true, Choices: []Choice{{Finish: Text("completed")}}})
	f("completed and nothing more", `{"type":"response.completed","response":null}`, Facts{Done: true, Choices: []Choice{{}}})
	f("details that are none", `{"type":"response.completed","response":{"incomplete_details":"x","usage":"y","metrics":[]}}`, Facts{Done: true, Choices: []Choice{{}}})
	f("failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`,
		Facts{Error: Error{Set: true, Code: Text("server_error")}, Choices: []Choice{{Finish: Text("failed")}}})
	f("error", `{"type":"error","code":"c","message":"m"}`, Facts{Error: Error{Set: true, Code: Text("c")}})
	f("error inside", `{"type":"error","error":{"type":"t","code":"c"}}`, Facts{Error: Error{Set: true, Type: Text("t"), Code: Text("c")}})
	f("chat's error", `{"error":"Unauthorized"}`, Facts{Error: Error{Set: true}})
	f("done", `[DONE]`, Facts{Done: true})
	f("other types", `{"type":"ping","delta":"x"}`, Facts{})
	f("no type", `{"delta":"x"}`, Facts{})
	f("a chat's chunk", `{"choices":[{"delta":{"content":"x"}}]}`, Facts{})

	skipped := Facts{Skipped: true}
	f("cut off", `{"type":"response.completed","response":{"status":"completed"}`, skipped)
	f("no object", `[1]`, skipped)

	if got := read(Responses, "response.output_text.delta", `{"delta":"x"}`); len(got.Choices) != 1 || got.Choices[0].Visible != Content {
		t.Errorf("type of the event: %+v", got)
	}
	if got := read(Responses, "response.output_text.done", `{"delta":"x","type":"response.output_text.delta"}`); got.Choices[0].Visible != Content {
		t.Errorf("two types: %+v", got)
	}
}

package dialect

import (
	"reflect"
	"testing"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	f := func(name, data string, want Facts) {
		t.Helper()
		if got := read(Messages, "", data); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	one := func(c Choice) Facts { return Facts{Choices: []Choice{c}} }
	n := func(n int64) Count { return Count{N: n, OK: true} }

	f("start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","usage":{"input_tokens":15,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7,"service_tier":"standard"}}}`,
		Facts{ID: Text("m"), Model: Text("x"), Choices: []Choice{{}}, Usage: Usage{Present: true, Apart: true, Prompt: n(15), Cached: n(3), Created: n(2)}})
	f("start of old", `{"type":"message_start","message":{"id":"m","content":[],"model":"x"}}`, Facts{ID: Text("m"), Model: Text("x"), Choices: []Choice{{}}})
	f("block", `{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}`, one(Choice{}))
	f("block with text", `{"type":"content_block_start","content_block":{"type":"text","text":"a"}}`, one(Choice{Visible: Content}))
	f("tool", `{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, one(Choice{Visible: Tool}))
	f("text", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, one(Choice{Visible: Content}))
	f("no text", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`, one(Choice{EmptyText: true}))
	f("thinking", `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}`, one(Choice{Visible: Reasoning}))
	f("arguments", `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`, one(Choice{Visible: Tool}))
	f("no arguments", `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}`, one(Choice{}))
	f("signature", `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"s"}}`, one(Choice{}))
	f("no delta", `{"type":"content_block_delta","delta":"x"}`, one(Choice{}))
	f("block and delta", `{"delta":{"text":"a"},"type":"content_block_start","content_block":{"thinking":"b"}}`, one(Choice{Visible: Reasoning}))
	f("block's end", `{"type":"content_block_stop","index":0}`, one(Choice{}))
	f("message's delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}`,
		Facts{Choices: []Choice{{Finish: Text("end_turn")}}, Usage: Usage{Present: true, Final: true, Apart: true, Completion: n(20)}})
	f("message's delta without usage", `{"type":"message_delta","delta":{"stop_reason":null},"usage":null}`, one(Choice{}))
	f("stop", `{"type":"message_stop"}`, Facts{Done: true})
	f("old stop", `[DONE]`, Facts{Done: true})
	f("ping", `{"type":"ping"}`, Facts{})
	f("error", `{"type":"error","error":{"type":"overloaded_error"}}`, Facts{Error: Error{Set: true, Type: Text("overloaded_error")}})
	f("error without one", `{"type":"error"}`, Facts{Error: Error{Set: true}})
	f("chat's error", `{"error":{"type":"t"}}`, Facts{Error: Error{Set: true, Type: Text("t")}})
	f("message that is none", `{"type":"message_start","message":"x"}`, one(Choice{}))
	f("cut off", `{"type":"message_stop"`, Facts{Skipped: true})
	f("no object", `x`, Facts{Skipped: true})
}

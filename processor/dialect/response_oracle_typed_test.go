package dialect

import (
	"strings"
)

// oracleResponses and oracleMessages read events that have a type, kind.

func oracleResponses(kind string, top map[string]any) (f Facts) {
	response, _ := top["response"].(map[string]any)
	f.ID, f.Model = text(response["id"]), text(response["model"])
	f.Error = oracleFailure(top["error"])
	if kind == typeError && !f.Error.Set {
		f.Error = Error{Set: true, Code: scalarText(top["code"])}
	}
	if !strings.HasPrefix(kind, "response.") {
		return f
	}
	var c Choice
	switch {
	case strings.HasSuffix(kind, ".delta"):
		s, isText := top["delta"].(string)
		c.EmptyText = isText && s == ""
		c.Logprobs = length(top["logprobs"])
		if s != "" {
			c.Visible = Content
			if strings.Contains(kind, "_call") {
				c.Visible = Tool
			}
			if strings.Contains(kind, "reasoning") {
				c.Visible = Reasoning
			}
		}
	case kind == "response.output_item.added" && oracleFunction(top["item"]):
		c.Visible = Tool
	case strings.HasSuffix(kind, ".done") && oracleFunction(top["item"]):
		c.Visible, c.Ended = Tool, true
	}
	if c.Visible == Tool {
		c.Call = count(top["output_index"])
	}
	switch kind {
	case "response.failed":
		f.Error = oracleFailure(response["error"])
		f.Error.Set = true
	case "response.completed", "response.incomplete":
		f.Done = true
	default:
		f.Choices = []Choice{c}
		return f
	}
	c.Finish = oracleResponseFinish(response)
	f.Choices = []Choice{c}
	f.Usage, f.Metrics = oracleInputOutput(response["usage"]), oracleMetrics(response["metrics"])
	return f
}

func oracleResponseFinish(response map[string]any) Text {
	if r := text(inside(response["incomplete_details"], "reason")); len(r) > 0 {
		return r
	}
	if status := text(response["status"]); string(status) != "queued" && string(status) != "in_progress" {
		return status
	}
	return nil
}

func oracleInputOutput(v any) Usage {
	u, is := v.(map[string]any)
	if !is {
		return Usage{}
	}
	return Usage{
		Present: true, Final: true,
		Prompt:     count(u["input_tokens"]),
		Completion: count(u["output_tokens"]),
		Cached:     count(inside(u["input_tokens_details"], "cached_tokens")),
		Reasoning:  count(inside(u["output_tokens_details"], "reasoning_tokens")),
	}
}

func oracleResponsesBody(top map[string]any) (f Facts) {
	f.ID, f.Model = text(top["id"]), text(top["model"])
	f.Usage, f.Metrics = oracleInputOutput(top["usage"]), oracleMetrics(top["metrics"])
	f.Error = oracleFailure(top["error"])
	if !f.Error.Set {
		switch {
		case top["type"] == typeError:
			f.Error = Error{Set: true, Code: scalarText(top["code"])}
		case top["object"] == typeError:
			f.Error = Error{Set: true, Type: text(top["type"]), Code: scalarText(top["code"])}
		}
	}
	f.Error.Set = f.Error.Set || top["status"] == "failed"
	if _, is := top["output"].([]any); is {
		f.Choices = []Choice{{Finish: oracleResponseFinish(top)}}
	}
	return f
}

func oracleMessages(kind string, top map[string]any) (f Facts) {
	message, _ := top["message"].(map[string]any)
	f.ID, f.Model = text(message["id"]), text(message["model"])
	f.Error = oracleFailure(top["error"])
	var c Choice
	switch kind {
	case "message_start":
		f.Usage = oracleMessageUsage(message["usage"])
		f.Usage.Completion = Count{}
	case "content_block_start":
		c = oracleBlock(top["content_block"])
		c.EmptyText = false
	case "content_block_delta":
		c = oracleBlock(top["delta"])
	case "message_delta":
		f.Usage = oracleMessageUsage(top["usage"])
		f.Usage.Final = f.Usage.Present
		c.Finish = text(inside(top["delta"], "stop_reason"))
	case "content_block_stop":
	case "message_stop":
		f.Done = true
		return f
	case typeError:
		f.Error.Set = true
		return f
	default:
		return f
	}
	f.Choices = []Choice{c}
	return f
}

func oracleBlock(v any) (c Choice) {
	block, _ := v.(map[string]any)
	s, isText := block["text"].(string)
	c.EmptyText = isText && s == ""
	if filled(block["thinking"]) {
		c.Visible |= Reasoning
	}
	if s != "" {
		c.Visible |= Content
	}
	if filled(block["id"]) || filled(block["name"]) || filled(block["partial_json"]) {
		c.Visible |= Tool
	}
	return c
}

func oracleMessageUsage(v any) Usage {
	u, is := v.(map[string]any)
	if !is {
		return Usage{}
	}
	return Usage{
		Present: true, Apart: true,
		Prompt:     count(u["input_tokens"]),
		Completion: count(u["output_tokens"]),
		Cached:     count(u["cache_read_input_tokens"]),
		Created:    count(u["cache_creation_input_tokens"]),
	}
}

func oracleMessagesBody(top map[string]any) (f Facts) {
	f.ID, f.Model = text(top["id"]), text(top["model"])
	f.Usage = oracleMessageUsage(top["usage"])
	f.Usage.Final = f.Usage.Present
	f.Error = oracleFailure(top["error"])
	f.Error.Set = f.Error.Set || top["type"] == typeError || top["object"] == typeError
	if _, is := top["content"].([]any); is {
		f.Choices = []Choice{{Finish: text(top["stop_reason"])}}
	}
	return f
}

// typedEvents are the forms of events that recordings lack.
var typedEvents = []string{
	`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}}`,
	`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\""}`,
	`{"output_index":1,"item":{"name":"f","arguments":"{}"},"type":"response.output_item.done"}`,
	`{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"a","logprob":-1}]}`,
	`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"m"},"usage":null}}`,
	`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}`,
	`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`,
	`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"cache_read_input_tokens":3}}`,
	`{"type":"error","error":{"type":"internal_error","message":"m"}}`,
	`{"type":"ping"}`,
	`{"id":"trsc-1","object":"transcription.chunk","choices":[{"delta":{"content":" Hello"}}]}`,
	`{"request_id":"g","output_mode":"text","choices":[{"index":0,"token_ids":[1,2],"text":"ab","finish_reason":"stop"}]}`,
	`{"metrics":{"speculative_decoding":{"mean_acceptance_length":1.5,"acceptance_histogram":[1,2]}}}`,
	`{"id":"embd-1","object":"list","model":"m","data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":4,"completion_tokens":0}}`,
	`{"type":"message","id":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}`,
	`{"object":"response","id":"r","output":[{"type":"message"}],"status":"completed","usage":{"output_tokens":1}}`,
	`{"text":"a","usage":{"type":"duration","seconds":3}}`,
}

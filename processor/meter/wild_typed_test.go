package meter

import (
	"fmt"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

const (
	responsesPath     = "/v1/responses"
	messagesPath      = "/v1/messages"
	transcriptionPath = "/v1/audio/transcriptions"
	generatePath      = "/inference/v1/generate"
	embeddingsPath    = "/v1/embeddings"
)

// typed returns a frame with one event that has its type in a line of its own.
func typed(ms int, kind, data string) frame {
	return raw(ms, fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data))
}

func of(path string, frames ...frame) exchange { return exchange{path: path, frames: frames} }

// The events of responses.

func lifecycle(ms int, kind string) frame {
	return typed(ms, kind, fmt.Sprintf(`{"response":{"id":"resp_1","model":"m","status":"in_progress","output":[],"usage":null},"type":%q}`, kind))
}

func delta(ms int, kind, text string) frame {
	return typed(ms, kind, fmt.Sprintf(`{"content_index":0,"delta":%q,"item_id":"i","output_index":0,"type":%q}`, text, kind))
}

func item(ms int, kind string, index int, item string) frame {
	return typed(ms, kind, fmt.Sprintf(`{"item":%s,"output_index":%d,"type":%q}`, item, index, kind))
}

func completed(ms, tokens int, more string) frame {
	return typed(ms, "response.completed", fmt.Sprintf(`{"response":{"id":"resp_1","model":"m","status":"completed","output":[],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":1}}%s},"type":"response.completed"}`, tokens, more))
}

const (
	outputText = "response.output_text.delta"
	call       = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":""}`
	callDone   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
	toolPart   = "response.function_call_arguments.delta"
	added      = "response.output_item.added"
	itemDone   = "response.output_item.done"
)

func finishIs(want string) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		if len(r.Finish) != 1 {
			t.Fatalf("%d finishes", len(r.Finish))
		}
		same(t, "finish", r.Finish[0], Some(want))
	}
}

func evidenceIs(n int64) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		var sum int64
		for _, e := range r.EvidenceEvents {
			sum += e
		}
		same(t, "evidence events", sum, n)
	}
}

func promptIs(n int64) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		same(t, "prompt", r.PromptTokens, Some(n))
	}
}

func errorIs(want string) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		same(t, "outcome", r.Outcome, ErrorInStream)
		same(t, "error type", r.ErrorType, want)
	}
}

var wildResponses = []wild{
	{"tinfoil-435-created-is-no-token", of(responsesPath, lifecycle(1, "response.created"), lifecycle(1, "response.in_progress"),
		item(2, added, 0, `{"type":"message","id":"msg_1","content":[],"role":"assistant"}`),
		typed(2, "response.content_part.added", `{"part":{"text":"not yet","type":"output_text"},"type":"response.content_part.added"}`),
		delta(9, outputText, "a"), typed(10, "response.output_text.done", `{"text":"a","type":"response.output_text.done"}`), completed(11, 2, "")),
		both(firstToken(9, KindContent), tokensAre(2, SourceUsage), evidenceIs(1), outcomeIs(OK), finishIs("completed"), promptIs(5), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first event", r.FirstEvent, ms(1))
			same(t, "role", r.Role.OK, false)
			same(t, "id", r.ResponseID, Some("resp_1"))
			same(t, "model", r.Model, Some("m"))
			same(t, "cached", r.CachedTokens, Some[int64](2))
			same(t, "reasoning", r.ReasoningTokens, Some[int64](1))
			same(t, "choices", r.Choices, 1)
		})},
	{"queqiao-b528-nothing-but-lifecycle", of(responsesPath, lifecycle(1, "response.created"), lifecycle(2, "response.in_progress")),
		both(outcomeIs(Truncated), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first token", r.FirstToken.OK, false)
			same(t, "reason", r.NoFirstToken, NoTokenTruncated)
			same(t, "output tokens", r.OutputTokens.OK, false)
		})},
	{"vllm-22341-cut-without-an-end", of(responsesPath, lifecycle(1, "response.created"), delta(2, outputText, "a"), delta(3, outputText, "b")),
		both(outcomeIs(Truncated), tokensAre(2, SourceEstimate))},
	{"vllm-22341-connection-closed", exchange{path: responsesPath, cause: CauseUpstream, frames: []frame{lifecycle(1, "response.created"), delta(2, outputText, "a")}},
		outcomeIs(UpstreamReset)},
	{"gie-2482-usage-inside-the-response", of(responsesPath, lifecycle(1, "response.created"), delta(2, outputText, "a"), completed(3, 7, "")),
		both(tokensAre(7, SourceUsage), promptIs(5))},
	{"kong-14768-usage-without-type-lines", of(responsesPath, at(1, `{"type":"response.output_text.delta","delta":"a"}`), at(2, `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":3,"output_tokens":4}}}`)),
		both(tokensAre(4, SourceUsage), outcomeIs(OK), firstToken(1, KindContent))},
	{"only-the-line-has-the-type", of(responsesPath, typed(1, outputText, `{"delta":"a"}`), typed(2, "response.completed", `{"response":{"status":"completed"}}`)),
		both(outcomeIs(OK), firstToken(1, KindContent), tokensAre(1, SourceEstimate))},
	{"vllm-35184-content-index-counts-deltas", of(responsesPath, typed(1, outputText, `{"content_index":1,"delta":"a","output_index":0,"type":"response.output_text.delta"}`), typed(2, outputText, `{"content_index":2,"delta":"b","output_index":0,"type":"response.output_text.delta"}`), completed(3, 2, "")),
		both(evidenceIs(2), func(t *testing.T, r *Record) { t.Helper(); same(t, "choices", r.Choices, 1) })},
	{"vllm-29725-tool-calls-as-text", of(responsesPath, delta(1, outputText, `<tool_call>{"name":"f"}`), completed(2, 9, "")), firstToken(1, KindContent)},
	{"deltas-before-their-item", of(responsesPath, delta(1, outputText, "a"), item(2, added, 0, `{"type":"message"}`), completed(3, 1, "")),
		both(firstToken(1, KindContent), evidenceIs(1))},
	{"tool-name-where-it-is-added", of(responsesPath, lifecycle(1, "response.created"), item(5, added, 0, call), delta(7, toolPart, "{}"), item(8, itemDone, 0, callDone), completed(9, 9, "")),
		both(firstToken(5, KindToolCall), evidenceIs(2), func(t *testing.T, r *Record) { t.Helper(); same(t, "last token", r.LastToken, ms(7)) })},
	{"tool-name-where-it-first-appears", of(responsesPath, item(5, added, 0, call), item(6, itemDone, 0, callDone), item(7, itemDone, 1, callDone), item(8, itemDone, 1, callDone), completed(9, 9, "")),
		both(firstToken(5, KindToolCall), evidenceIs(2), func(t *testing.T, r *Record) { t.Helper(); same(t, "last token", r.LastToken, ms(7)) })},
	{"tool-index-beyond-all", of(responsesPath, item(5, added, 64, call), item(6, itemDone, 64, callDone), item(7, itemDone, 1e9, callDone), completed(9, 9, "")), evidenceIs(1)},
	{"mcp-and-code-are-tools", of(responsesPath, delta(1, "response.mcp_call_arguments.delta", "{"), delta(2, "response.code_interpreter_call_code.delta", "x"), delta(3, "response.custom_tool_call_input.delta", "y"), completed(4, 3, "")),
		both(firstToken(1, KindToolCall), evidenceIs(3))},
	{"reasoning-then-answer", of(responsesPath, delta(1, "response.reasoning_text.delta", "x"), delta(2, "response.reasoning_summary_text.delta", "y"), delta(4, outputText, "a"), completed(5, 3, "")),
		both(firstToken(1, KindReasoning), func(t *testing.T, r *Record) { t.Helper(); same(t, "answer", r.FirstAnswer, ms(4)) })},
	{"refusal-is-content", of(responsesPath, delta(1, "response.refusal.delta", "no"), completed(2, 1, "")), firstToken(1, KindContent)},
	{"empty-delta", of(responsesPath, delta(1, outputText, ""), completed(2, 1, "")),
		func(t *testing.T, r *Record) { t.Helper(); same(t, "reason", r.NoFirstToken, NoTokenHidden) }},
	{"logprobs-of-a-delta", of(responsesPath, at(1, `{"type":"response.output_text.delta","delta":"ab","logprobs":[{"token":"a"},{"token":"b"}]}`)), tokensAre(2, SourceLogprobs)},
	{"length-inside-completed", of(responsesPath, delta(1, outputText, "a"), completed(2, 1, `,"incomplete_details":{"reason":"max_output_tokens"}`)),
		both(outcomeIs(OK), finishIs("max_output_tokens"))},
	{"incomplete-is-an-end", of(responsesPath, delta(1, outputText, "a"), at(2, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null}}`)),
		both(outcomeIs(OK), finishIs("incomplete"))},
	{"completed-without-a-status", of(responsesPath, delta(1, outputText, "a"), at(2, `{"type":"response.completed","response":{}}`)), outcomeIs(OKNoFinish)},
	{"failed", of(responsesPath, lifecycle(1, "response.created"), at(2, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}`)),
		both(errorIs("server_error"), func(t *testing.T, r *Record) { t.Helper(); same(t, "reason", r.NoFirstToken, NoTokenError) })},
	{"failed-and-does-not-say-why", of(responsesPath, at(2, `{"type":"response.failed"}`)), errorIs("")},
	{"error-event", of(responsesPath, delta(1, outputText, "a"), at(2, `{"type":"error","code":"rate_limit","message":"m","sequence_number":3}`)), errorIs("rate_limit")},
	{"error-of-chat-in-responses", of(responsesPath, at(1, anError)), errorIs("InternalServerError")},
	{"error-that-is-no-json", of(responsesPath, typed(1, "error", "boom")), errorIs("")},
	{"vllm-54424-keep-alives", of(responsesPath, lifecycle(1, "response.created"), raw(900, ": keep-alive\n\n"), delta(1800, outputText, "a"), completed(1801, 1, "")),
		both(firstToken(1800, KindContent), func(t *testing.T, r *Record) { t.Helper(); same(t, "keep-alives", r.KeepAlives, 1) })},
	{"done-behind-completed", of(responsesPath, delta(1, outputText, "a"), completed(2, 1, ""), at(2, done)),
		both(outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "events", r.Events, 3) })},
	{"metrics-of-the-server", of(responsesPath, delta(1, outputText, "a"), completed(2, 1, `,"metrics":{"time_to_first_token_ms":1.5,"queue_time_ms":0,"speculative_decoding":{"num_draft_tokens":4}}`)),
		func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "metrics", *r.ServerMetrics, ServerMetrics{TimeToFirstTokenMS: Some(1.5), QueueTimeMS: Some(0.0), SpeculativeDecoding: `{"num_draft_tokens":4}`})
		}},
	{"replay-of-a-response", exchange{path: "/v1/responses/resp_1?stream=true", method: "GET", frames: []frame{lifecycle(1, "response.created"), delta(1, outputText, "a"), delta(1, outputText, "b"), completed(1, 9, "")}},
		both(outcomeIs(OK), evidenceIs(0), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first token", r.FirstToken.OK, false)
			same(t, "reason", r.NoFirstToken, NoTokenReason(""))
			same(t, "output tokens", r.OutputTokens.OK, false)
			same(t, "prompt tokens", r.PromptTokens.OK, false)
			same(t, "samples", samples(r.ITL), 0)
			same(t, "events", r.Events, 4)
		})},
	{"client-hung-up-before-the-end", exchange{path: responsesPath, cause: CauseClient, frames: []frame{lifecycle(1, "response.created"), delta(2, outputText, "a")}}, outcomeIs(ClientCancelled)},
	{"answer-in-one-piece", exchange{path: responsesPath, contentType: jsonType, frames: []frame{raw(5, `{"id":"resp_1","object":"response","model":"m","status":"completed","error":null,"output":[{"type":"message","content":[{"text":"usage"}]}],"usage":{"input_tokens":5,"output_tokens":7}}`)}},
		both(outcomeIs(OK), tokensAre(7, SourceUsage), finishIs("completed"), promptIs(5))},
	{"answer-still-queued", exchange{path: responsesPath, contentType: jsonType, frames: []frame{raw(5, `{"id":"resp_1","object":"response","status":"queued","output":[],"usage":null}`)}},
		both(outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "finish", r.Finish[0].OK, false) })},
	{"answer-that-failed", exchange{path: responsesPath, contentType: jsonType, frames: []frame{raw(5, `{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error"},"output":[]}`)}},
		errorIs("server_error")},
	{"json-error-for-a-stream", exchange{path: responsesPath, contentType: jsonType, status: 400, ask: dialect.Request{Stream: true}, frames: []frame{raw(5, `{"error":{"message":"m","type":"invalid_request_error"}}`)}},
		both(outcomeIs(HTTPError), func(t *testing.T, r *Record) { t.Helper(); same(t, "error type", r.ErrorType, "invalid_request_error") })},
	{"html-of-a-proxy", exchange{path: responsesPath, contentType: "text/html", frames: []frame{raw(5, "<html></html>")}}, outcomeIs(Unparsed)},
	{"fastapi-not-found", exchange{path: responsesPath, contentType: jsonType, frames: []frame{raw(5, `{"detail":"Not Found"}`)}}, outcomeIs(Unparsed)},
}

// The events of messages.

func messageStart(ms int, usage string) frame {
	return typed(ms, "message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","usage":%s}}`, usage))
}

func blockStart(ms int, block string) frame {
	return typed(ms, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":%s}`, block))
}

func blockDelta(ms int, delta string) frame {
	return typed(ms, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":%s}`, delta))
}

func textDelta(ms int, text string) frame {
	return blockDelta(ms, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
}

func messageDelta(ms int, usage string) frame {
	return typed(ms, "message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":%s}`, usage))
}

func messageStop(ms int) frame { return typed(ms, "message_stop", `{"type":"message_stop"}`) }

const startUsage = `{"input_tokens":15,"output_tokens":1}`

var wildMessages = []wild{
	{"litellm-31404-first-token-not-the-whole-duration", of(messagesPath, messageStart(1, startUsage), typed(2, "ping", `{"type":"ping"}`), blockStart(3, `{"type":"text","text":""}`),
		textDelta(4, "a"), textDelta(90, "b"), typed(91, "content_block_stop", `{"type":"content_block_stop","index":0}`), messageDelta(92, `{"output_tokens":3}`), messageStop(93)),
		both(firstToken(4, KindContent), tokensAre(3, SourceUsage), promptIs(15), evidenceIs(2), outcomeIs(OK), finishIs("end_turn"), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first event", r.FirstEvent, ms(1))
			same(t, "role", r.Role.OK, false)
			same(t, "id", r.ResponseID, Some("msg_1"))
			same(t, "model", r.Model, Some("m"))
			same(t, "last token", r.LastToken, ms(90))
			same(t, "cached", r.CachedTokens.OK, false)
			same(t, "choices", r.Choices, 1)
		})},
	{"eaig-2116-usage-is-merged-per-field", of(messagesPath, messageStart(1, `{"input_tokens":10,"cache_creation_input_tokens":4,"cache_read_input_tokens":6,"output_tokens":1}`), textDelta(2, "a"),
		messageDelta(3, `{"output_tokens":2}`), messageDelta(4, `{"output_tokens":9,"cache_creation_input_tokens":5}`), messageStop(5)),
		both(tokensAre(9, SourceUsage), promptIs(21), func(t *testing.T, r *Record) { t.Helper(); same(t, "cached", r.CachedTokens, Some[int64](6)) })},
	{"llmd-2437-usage-replaced-by-zeros", of(messagesPath, messageStart(1, `{"input_tokens":15,"cache_read_input_tokens":7}`), textDelta(2, "a"), messageDelta(3, `{"output_tokens":5}`), messageDelta(4, `{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`), messageStop(5)),
		both(tokensAre(5, SourceUsage), promptIs(22), func(t *testing.T, r *Record) { t.Helper(); same(t, "cached", r.CachedTokens, Some[int64](7)) })},
	{"vllm-0.32-cached-tokens-leave-the-input", of(messagesPath, messageStart(1, `{"input_tokens":15,"output_tokens":0}`), textDelta(2, "a"), messageDelta(3, `{"input_tokens":5,"output_tokens":5,"cache_read_input_tokens":10,"cache_creation_input_tokens":0}`), messageStop(5)),
		both(promptIs(15), func(t *testing.T, r *Record) { t.Helper(); same(t, "cached", r.CachedTokens, Some[int64](10)) })},
	{"cache-told-at-the-end-only", of(messagesPath, messageStart(1, `{"input_tokens":15}`), messageDelta(3, `{"output_tokens":5,"cache_read_input_tokens":10}`), messageStop(5)), promptIs(25)},
	{"output-of-the-start-is-no-source", exchange{path: messagesPath, cause: CauseClient, frames: []frame{messageStart(1, `{"input_tokens":15,"output_tokens":8}`)}},
		both(outcomeIs(ClientCancelled), promptIs(15), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "output tokens", r.OutputTokens.OK, false)
			same(t, "source", r.OutputSource, SourceNone)
			same(t, "first token", r.FirstToken.OK, false)
		})},
	{"vllm-45367-start-without-type-and-role", of(messagesPath, typed(1, "message_start", `{"type":"message_start","message":{"id":"chatcmpl-1","content":[],"model":"m"}}`), textDelta(2, "a"), messageDelta(3, `{"input_tokens":5,"output_tokens":2}`), messageStop(4)),
		both(tokensAre(2, SourceUsage), promptIs(5), func(t *testing.T, r *Record) { t.Helper(); same(t, "id", r.ResponseID, Some("chatcmpl-1")) })},
	{"vllm-37510-done-behind-message-stop", of(messagesPath, messageStart(1, startUsage), textDelta(2, "a"), messageDelta(3, `{"output_tokens":2}`), messageStop(4), at(4, done)),
		both(outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "events", r.Events, 5) })},
	{"vllm-48707-engine-error", of(messagesPath, messageStart(1, startUsage), textDelta(2, "a"), typed(3, "error", `{"type":"error","error":{"type":"internal_error","message":"5 validation errors for ChatCompletionStreamResponse"}}`)),
		both(errorIs("internal_error"), tokensAre(1, SourceEstimate))},
	{"vllm-48707-error-and-done", of(messagesPath, typed(3, "error", `{"type":"error","error":{"type":"internal_error","message":"m"}}`), at(3, done)), errorIs("internal_error")},
	{"overloaded-without-type-lines", of(messagesPath, at(1, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`)), errorIs("overloaded_error")},
	{"thinking-and-its-signature", of(messagesPath, messageStart(1, startUsage), blockStart(2, `{"type":"thinking","thinking":""}`), blockDelta(3, `{"type":"thinking_delta","thinking":"x"}`), blockDelta(5, `{"type":"signature_delta","signature":"5be0"}`), messageDelta(6, `{"output_tokens":2}`), messageStop(7)),
		both(firstToken(3, KindReasoning), evidenceIs(1), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "answer", r.FirstAnswer.OK, false)
			same(t, "last token", r.LastToken, ms(3))
		})},
	{"tool-name-where-it-starts", of(messagesPath, messageStart(1, startUsage), blockStart(4, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`), blockDelta(5, `{"type":"input_json_delta","partial_json":""}`), blockDelta(6, `{"type":"input_json_delta","partial_json":"{"}`), messageDelta(7, `{"output_tokens":9}`), messageStop(8)),
		both(firstToken(4, KindToolCall), evidenceIs(2))},
	{"message-without-an-end", of(messagesPath, messageStart(1, startUsage), textDelta(2, "a")), outcomeIs(Truncated)},
	{"message-delta-and-no-stop", of(messagesPath, messageStart(1, startUsage), textDelta(2, "a"), messageDelta(3, `{"output_tokens":2}`)), outcomeIs(OK)},
	{"stop-without-a-reason", of(messagesPath, messageStart(1, startUsage), messageStop(2)), outcomeIs(OKNoFinish)},
	{"llmd-1585-query-string", exchange{path: "/v1/messages?beta=true", frames: []frame{textDelta(2, "a"), messageDelta(3, `{"output_tokens":2}`), messageStop(4)}}, tokensAre(2, SourceUsage)},
	{"message-in-one-piece", exchange{path: messagesPath, contentType: jsonType, frames: []frame{raw(5, `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"model":"m","stop_reason":"max_tokens","usage":{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":10}}`)}},
		both(outcomeIs(OK), tokensAre(7, SourceUsage), promptIs(15), finishIs("max_tokens"), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first token", r.FirstToken.OK, false)
		})},
	{"message-error-in-one-piece", exchange{path: messagesPath, status: 404, contentType: jsonType, frames: []frame{raw(5, `{"type":"error","error":{"type":"NotFoundError","message":"m"}}`)}},
		both(outcomeIs(HTTPError), func(t *testing.T, r *Record) { t.Helper(); same(t, "error type", r.ErrorType, "NotFoundError") })},
}

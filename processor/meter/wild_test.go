package meter

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// wild is an input that broke others, named after where it was seen.
type wild struct {
	name  string
	x     exchange
	check func(t *testing.T, r *Record)
}

// TestInTheWild plays each input as it is, and byte by byte.
func TestInTheWild(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, list := range [][]wild{wildTimes, wildUsage, wildEnds, wildForms, wildResponses, wildMessages, wildOthers} {
		for _, w := range list {
			if seen[w.name] {
				t.Fatalf("two inputs are named %s", w.name)
			}
			seen[w.name] = true
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				r := play(t, w.x)
				w.check(t, r)
				cut := w.x
				cut.frames, cut.end = nil, int(r.End.Milliseconds())
				for _, f := range w.x.frames {
					for i := range len(f.body) {
						cut.frames = append(cut.frames, raw(f.at, f.body[i:i+1]))
					}
				}
				single := play(t, cut)
				single.Frames, single.SharedFrames = r.Frames, r.SharedFrames
				if !reflect.DeepEqual(single, r) {
					t.Errorf("byte by byte:\n got %+v\nwant %+v", single, r)
				}
			})
		}
	}
}

const completionsPath = "/v1/completions"

func firstToken(n int, k Kind) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		same(t, "first token", r.FirstToken, ms(n))
		same(t, "kind", r.FirstTokenKind, k)
	}
}

func outcomeIs(o Outcome) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		same(t, "outcome", r.Outcome, o)
	}
}

func tokensAre(n int64, s Source) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		tokens(t, r, n, s)
	}
}

// both checks several.
func both(checks ...func(*testing.T, *Record)) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		for _, c := range checks {
			c(t, r)
		}
	}
}

func stream(frames ...frame) exchange { return exchange{frames: frames} }

// When the first token came.
var wildTimes = []wild{
	{"vllm-3768-role-long-before-content", stream(at(1, role(0)), at(401, chunk(0, text("a")))),
		both(firstToken(401, KindContent), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first byte", r.FirstByte, ms(1))
			same(t, "role", r.Role, ms(1))
		})},
	{"vllm-15106-role-during-prefill", stream(at(10, role(0)), at(2010, chunk(0, text("a")))), firstToken(2010, KindContent)},
	{"guidellm-737-reasoning-first", stream(at(1, chunk(0, `{"reasoning_content":"x","content":null}`)), at(9, chunk(0, text("a")))),
		both(firstToken(1, KindReasoning), func(t *testing.T, r *Record) { t.Helper(); same(t, "answer", r.FirstAnswer, ms(9)) })},
	{"vllm-29408-both-reasonings", stream(at(1, chunk(0, `{"reasoning":"x","reasoning_content":"x"}`)), at(2, chunk(0, `{"content":"a","reasoning_content":null}`))),
		both(firstToken(1, KindReasoning), tokensAre(2, SourceEstimate))},
	{"vllm-40816-answer-in-reasoning", stream(at(1, chunk(0, thought)), at(2, chunk(0, thought, stop)), at(3, done)),
		both(firstToken(1, KindReasoning), outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "answer", r.FirstAnswer.OK, false) })},
	{"vllm-31501-reasoning-ends-and-content-begins", stream(at(1, chunk(0, `{"reasoning":"x","content":"a"}`)), at(2, chunk(0, text("b")))),
		both(firstToken(1, KindReasoning), func(t *testing.T, r *Record) { t.Helper(); same(t, "answer", r.FirstAnswer, ms(2)) })},
	{"sglang-23954-reasoning-only", stream(at(7, chunk(0, thought)), at(9, done)), firstToken(7, KindReasoning)},
	{"sglang-29251-role-is-no-token", stream(at(1, role(0)), at(2, done)),
		func(t *testing.T, r *Record) { t.Helper(); same(t, "first token", r.FirstToken.OK, false) }},
	{"oh-my-pi-12213-nothing-but-a-tool-call", stream(at(1, role(0)), at(8, chunk(0, toolName)), at(9, chunk(0, nothing, `"finish_reason":"tool_calls"`)), at(9, done)),
		firstToken(8, KindToolCall)},
	{"aibrix-2477-the-first-not-the-last", stream(at(5, chunk(0, text("a"))), at(4400, chunk(0, text("b")))), firstToken(5, KindContent)},
	{"litellm-25598-not-the-whole-duration", exchange{contentType: jsonType, frames: []frame{raw(900, answerJSON)}},
		func(t *testing.T, r *Record) { t.Helper(); same(t, "first token", r.FirstToken.OK, false) }},
	{"vllm-47647-keep-alives-before-and-between", stream(raw(1, ": keep-alive\n\n"), at(2000, role(0)), at(2001, chunk(0, text("a"))), raw(2600, ": keep-alive\n\n"), at(3000, chunk(0, text("b")))),
		both(firstToken(2001, KindContent), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "first byte", r.FirstByte, ms(1))
			same(t, "first event", r.FirstEvent, ms(2000))
			same(t, "keep-alives", r.KeepAlives, 2)
			same(t, "stalls", r.Stalls, 1)
		})},
	{"vllm-27485-empty-role-and-finish-are-no-gaps", stream(at(0, role(0)), at(10, chunk(0, text("a"))), at(20, chunk(0, emptyText)), at(30, chunk(0, text("b"))), at(40, chunk(0, nothing, stop)), at(50, final(4), done)),
		func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "samples", samples(r.ITL), 1)
			same(t, "gap", r.LongestGap, ms(20))
		}},
	{"llmperf-99-several-tokens-a-chunk", stream(at(0, chunk(0, text("abc"), ids(3))), at(40, chunk(0, text("defg"), ids(4)))),
		func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "samples", samples(r.ITL), 4)
			same(t, "their sum", r.ITL.Exact[0].Sum, ms(40).V)
		}},
}

// What was counted.
var wildUsage = []wild{
	{"sglang-12241-running-usage", stream(at(1, counted(0, 1, text("a")), counted(0, 4, text("b"))), at(2, counted(0, 5, text("c"))), at(3, counted(0, 99, text("d"), stop)), at(4, done)),
		tokensAre(99, SourceContinuous)},
	{"vllm-7262-running-and-final", stream(at(1, counted(0, 1, text("a"))), at(2, counted(0, 2, text("b"), stop), final(2), done)), tokensAre(2, SourceUsage)},
	{"production-stack-873-no-choices", stream(at(1, chunk(0, text("a"))), at(2, final(3), done)), tokensAre(3, SourceUsage)},
	{"portkey-1629-empty-delta", stream(at(1, chunk(0, text("a"))), at(2, counted(0, 3, nothing)), at(3, done)),
		both(tokensAre(3, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "evidence", r.EvidenceEvents[0], 1) })},
	{"omniroute-9750-without-choices", stream(at(1, chunk(0, text("a"))), at(2, `{"usage":{"completion_tokens":3}}`), at(3, done)), tokensAre(3, SourceUsage)},
	{"tgi-12394-usage-beside-choices", stream(at(1, chunk(0, text("a"))), at(2, counted(0, 3, `{"role":"assistant","content":""}`, length)), at(3, done)), tokensAre(3, SourceUsage)},
	{"litellm-25410-usage-behind-the-finish", stream(at(1, chunk(0, text("a"))), at(2, chunk(0, nothing, stop)), at(3, final(5)), at(4, done)),
		both(tokensAre(5, SourceUsage), outcomeIs(OK))},
	{"gie-329-null-usage-on-each-chunk", exchange{path: completionsPath, frames: []frame{at(1, `{"choices":[{"index":0,"text":"a"}],"usage":null}`), at(2, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null}}`), at(3, done)}},
		both(tokensAre(2, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "cached", r.CachedTokens.OK, false) })},
	{"llmd-981-numbers-as-text", stream(at(1, chunk(0, text("a"))), at(2, `{"choices":[],"usage":{"prompt_tokens":"7","completion_tokens":9.0}}`), at(3, done)),
		both(tokensAre(9, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "prompt", r.PromptTokens, Some[int64](7)) })},
	{"llmd-1240-usage-as-text", stream(at(1, chunk(0, text("a"))), at(2, `{"choices":[],"usage":"x"}`), at(3, done)), tokensAre(1, SourceEstimate)},
	{"gie-1357-usage-and-mark-in-two-frames", stream(at(1, chunk(0, text("a"))), at(2, final(4)), raw(3, "data: [DO"), raw(4, "NE]\n\n")),
		both(tokensAre(4, SourceUsage), outcomeIs(OKNoFinish))},
	{"higress-4146-usage-over-two-frames", stream(at(1, chunk(0, text("a"))), raw(2, `data: {"choices":[],"usage":{"prompt_tokens":7,`), raw(3, "\"total_tokens\":17,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")),
		tokensAre(10, SourceUsage)},
	{"vllm-6083-no-usage", stream(at(1, role(0)), at(2, chunk(0, text("a"))), at(3, chunk(0, nothing, stop)), at(4, done)), tokensAre(2, SourceEstimate)},
	{"vllm-8625-running-usage-that-does-not-run", stream(at(1, counted(0, 1, text("a"))), at(2, counted(0, 1, text("b"))), at(3, final(2), done)),
		both(tokensAre(2, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "evidence", r.EvidenceEvents[0], 2) })},
	{"vllm-9028-first-count-of-zero", stream(at(1, counted(0, 0, `{"role":"assistant","content":""}`)), at(2, counted(0, 1, text("a")))),
		both(tokensAre(1, SourceContinuous), firstToken(2, KindContent))},
	{"vllm-27482-ids-of-some-tokens", stream(at(1, chunk(0, text("a"), ids(1))), at(2, chunk(0, text("b"), ids(1))), at(3, final(5), done)), tokensAre(5, SourceUsage)},
	{"vllm-45678-several-ids-a-chunk", stream(at(1, chunk(0, text("a"), ids(1))), at(2, chunk(0, text("bcd"), ids(3)))), tokensAre(4, SourceTokenIDs)},
	{"vllm-omni-2313-all-ids-so-far", stream(at(1, chunk(0, text("a"), `"token_ids":[1]`)), at(2, chunk(0, text("a"), `"token_ids":[1,2]`)), at(3, chunk(0, text("a"), `"token_ids":[1,2,3]`))),
		tokensAre(3, SourceTokenIDs)},
	{"lmcache-3258-tokens-and-nothing-shown", stream(at(1, role(0)), at(2, chunk(0, nothing, stop)), at(3, final(24), done)),
		both(tokensAre(24, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "reason", r.NoFirstToken, NoTokenHidden) })},
	{"vllm-17448-garbled-text", stream(at(1, chunk(0, "{\"content\":\"\uFFFD\"}")), at(2, chunk(0, "{\"content\":\"\xf0\x9f\"}"))), tokensAre(2, SourceEstimate)},
	{"sglang-44-steps-of-several-tokens", stream(at(0, counted(0, 4, text("abcd"))), at(40, counted(0, 8, text("efgh"))), at(50, final(8), done)),
		func(t *testing.T, r *Record) { t.Helper(); same(t, "samples", samples(r.ITL), 4) }},
	{"smg-2555-interleaved-choices", stream(at(1, chunk(0, text("a"))), at(2, chunk(1, text("b"))), at(3, chunk(0, text("c"))), at(4, chunk(1, nothing, stop)), at(5, chunk(0, nothing, stop)), at(6, final(6), done)),
		both(tokensAre(6, SourceUsage), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "prompt", r.PromptTokens, Some[int64](5))
			same(t, "choice 0", r.EvidenceEvents[0], 2)
			same(t, "choice 1", r.EvidenceEvents[1], 1)
			same(t, "longest gap", r.LongestGap, ms(2))
		})},
	{"aibrix-2604-usage-in-content", stream(at(1, chunk(0, text(`{"usage":{"completion_tokens":9}} data: [DONE]`))), at(2, done)), tokensAre(1, SourceEstimate)},
}

// How it ended.
var wildEnds = []wild{
	{"vllm-27572-no-finish", stream(at(1, role(0)), at(2, chunk(0, toolName)), at(3, done)), outcomeIs(OKNoFinish)},
	{"guidellm-743-error-inside-200", stream(at(1, `{"error":{"message":"TimeoutError","type":"GatewayTimeout","code":504}}`), at(1, done)),
		both(outcomeIs(ErrorInStream), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "error type", r.ErrorType, "GatewayTimeout")
			same(t, "reason", r.NoFirstToken, NoTokenError)
		})},
	{"rust-frontend-code-as-text", stream(at(1, `{"error":{"message":"m","type":"server_error","code":"server_error"}}`)), outcomeIs(ErrorInStream)},
	{"litellm-33404-reset-after-the-role", exchange{frames: []frame{at(1, role(0))}, cause: CauseUpstream},
		both(outcomeIs(UpstreamReset), func(t *testing.T, r *Record) { t.Helper(); same(t, "finish", r.Finish[0].OK, false) })},
	{"cliproxyapi-4904-finish-and-no-mark", stream(at(1, chunk(0, text("a"))), at(2, chunk(0, nothing, stop))), outcomeIs(OK)},
	{"opencodex-1170-neither-finish-nor-mark", stream(at(1, chunk(0, text("a")))), outcomeIs(Truncated)},
	{"preloop-109-no-byte", stream(), both(outcomeIs(Empty), func(t *testing.T, r *Record) { t.Helper(); same(t, "first byte", r.FirstByte.OK, false) })},
	{"eaig-2563-hung-up-after-usage", exchange{cause: CauseClient, frames: []frame{at(1, chunk(0, text("a"))), at(2, chunk(0, nothing, stop)), at(3, final(2))}},
		both(outcomeIs(ClientCancelledAfterFinish), tokensAre(2, SourceUsage))},
	{"llmd-empty-body-at-the-end", stream(at(1, chunk(0, text("a"))), at(2, chunk(0, nothing, stop)), at(3, done), raw(4, "")),
		both(outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "frames", r.Frames, 3) })},
	{"envoy-3775-head-only", exchange{status: 204, contentType: "text/plain"}, outcomeIs(Unparsed)},
	{"eaig-503-json-for-a-stream", exchange{status: 503, contentType: jsonType, ask: dialect.Request{Stream: true}, frames: []frame{raw(1, `{"error":{"message":"busy","type":"Service Unavailable","code":503}}`)}},
		both(outcomeIs(HTTPError), func(t *testing.T, r *Record) { t.Helper(); same(t, "error type", r.ErrorType, "Service Unavailable") })},
	{"llmd-2807-path-of-no-dialect", exchange{path: "/v1/messages/count_tokens", contentType: jsonType, frames: []frame{raw(1, `{"input_tokens":3}`)}}, outcomeIs(OK)},
	{"eaig-compressed-and-empty", exchange{encoding: "gzip", contentType: jsonType}, outcomeIs(Unparsed)},
	{"eaig-2198-last-frame-empty", exchange{contentType: jsonType, frames: []frame{raw(1, answerJSON), raw(2, "")}}, both(outcomeIs(OK), tokensAre(2, SourceUsage))},
	{"vllm-engine-died-before-0.10.1", stream(at(1, `{"error": {"object": "error", "message": "m", "type": "BadRequestError", "param": null, "code": 400}}`), at(1, done)),
		both(outcomeIs(ErrorInStream), func(t *testing.T, r *Record) { t.Helper(); same(t, "error type", r.ErrorType, "BadRequestError") })},
}

// How it was written.
var wildForms = []wild{
	{"openai-python-498-no-space", stream(raw(1, "data:"+chunk(0, text("a"))+"\n\ndata:[DONE]\n\n")), both(firstToken(1, KindContent), outcomeIs(OKNoFinish))},
	{"langchain-dart-778-error-type-no-space", stream(raw(1, "event:error\ndata:{\"message\":\"m\"}\n\n")), outcomeIs(ErrorInStream)},
	{"elastic-154632-crlf", stream(raw(1, "data: "+chunk(0, text("a"))+"\r\n\r\ndata: [DONE]\r\n\r\n")), both(firstToken(1, KindContent), outcomeIs(OKNoFinish))},
	{"llm-gateway-2053-comment-as-data", stream(at(1, ": OPENROUTER PROCESSING"), at(2, chunk(0, text("a"))), at(3, done)),
		both(firstToken(2, KindContent), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "events", r.Events, 3)
			same(t, "skipped", r.Skipped, 1)
			same(t, "first event", r.FirstEvent, ms(1))
		})},
	{"routstr-543-comments-crlf-several-lines-usage-with-content",
		stream(raw(1, ": OPENROUTER PROCESSING\r\n\r\n"), raw(2, "data: {\"choices\":[{\"index\":0,\r\ndata: \"delta\":{\"content\":\"a\"}}]}\r\n\r\n"), at(3, counted(0, 2, text("b"), stop)), at(4, done)),
		both(firstToken(2, KindContent), tokensAre(2, SourceContinuous), outcomeIs(OK))},
	{"aibrix-1674-empty-objects", stream(at(1, `{}`), at(2, chunk(0, text("a"))), at(3, done)), both(firstToken(2, KindContent), outcomeIs(OKNoFinish))},
	{"ark-1346-pings", stream(raw(1, ": ping - 2026\n\n:\n\n\n\nevent: ping\n\ndata:\n\ndata: \n\n"), at(2, chunk(0, text("a")))),
		both(firstToken(2, KindContent), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "events", r.Events, 1)
			same(t, "keep-alives", r.KeepAlives, 2)
		})},
	{"vllm-19650-finish-absent-or-null", stream(at(1, chunk(0, text("a"), `"finish_reason":null`)), at(2, chunk(0, text("b"))), at(3, done)), outcomeIs(OKNoFinish)},
	{"vllm-35705-text-on-the-finish-chunk", stream(at(1, chunk(0, text("a"))), at(5, chunk(0, text("b"), length)), at(6, done)),
		both(outcomeIs(OK), tokensAre(2, SourceEstimate), func(t *testing.T, r *Record) { t.Helper(); same(t, "last token", r.LastToken, ms(5)) })},
	{"litellm-29286-no-tools-beside-content", stream(at(1, chunk(0, `{"content":"a","tool_calls":[]}`))), firstToken(1, KindContent)},
	{"theopenco-3694-partial-tools", stream(at(1, chunk(0, `{"tool_calls":[{"index":0}]}`)), at(2, chunk(0, `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`))), firstToken(2, KindToolCall)},
	{"aibrix-2638-html-in-arguments", stream(at(1, chunk(0, fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%q}}]}`, strings.Repeat("<div class=\"a\">\n\n", 40))))), firstToken(1, KindToolCall)},
	{"gigachat-12-framing-in-content", stream(at(1, chunk(0, text("data: [DONE]\n\n: [\"")), chunk(0, text("b"))), at(2, done)),
		func(t *testing.T, r *Record) { t.Helper(); same(t, "events", r.Events, 3) }},
	{"evalscope-1642-line-separators", stream(at(1, chunk(0, "{\"content\":\"a\u2028b\u2029c\u0085\"}"))), firstToken(1, KindContent)},
	{"hostile-index", stream(at(1, `{"choices":[{"index":1000000000,"delta":{"content":"a"}},{"index":-1,"delta":{"content":"b"}}]}`), at(2, done)),
		func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "choices", r.Choices, 0)
			same(t, "skipped", r.Skipped, 1)
			same(t, "outcome", r.Outcome, OKNoFinish)
		}},
	{"fake-stream-whole-answer-in-one-event", exchange{path: completionsPath, frames: []frame{at(1, `{"id":"c","choices":[{"index":0,"text":"whole answer","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`), at(1, done)}},
		both(outcomeIs(OK), tokensAre(7, SourceContinuous), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "tokens of the event", onlyChunk(t, r), 7)
			same(t, "TPOT", len(r.TPOT), 0)
		})},
	{"aibrix-1816-completions-stream", exchange{path: completionsPath, frames: []frame{at(1, completion(0, " a")), at(2, completion(0, "", stop)), at(3, done)}},
		both(firstToken(1, KindContent), outcomeIs(OK))},
	{"event-over-the-limit", exchange{options: Options{MaxEvent: 200}, frames: []frame{at(1, chunk(0, text(strings.Repeat("a", 300)))), at(2, chunk(0, text("b"))), at(3, final(2), done)}},
		both(firstToken(2, KindContent), tokensAre(2, SourceUsage), func(t *testing.T, r *Record) { t.Helper(); same(t, "skipped", r.Skipped, 1) })},
}

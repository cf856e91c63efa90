package meter

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Audio, generate, the pooling APIs, and paths that tell no dialect.

func segment(text, more string) string {
	return `{"id":"trsc-1","object":"transcription.chunk","model":"whisper","choices":[{"delta":{"content":"` + text + `"}` + more + `}]}`
}

func dialectIs(want dialect.Dialect) func(*testing.T, *Record) {
	return func(t *testing.T, r *Record) {
		t.Helper()
		same(t, "dialect", r.Dialect, want)
	}
}

const segmentEnds = `,"finish_reason":"stop"`

var wildOthers = []wild{
	{"audio-without-index-and-a-finish-for-each-segment", of(transcriptionPath, at(1, segment(" Hello", "")), at(2, segment(".", segmentEnds)), at(30, segment(" World", "")), at(31, segment("", segmentEnds)), at(32, `{"id":"trsc-1","object":"transcription.chunk","choices":[],"usage":{"prompt_tokens":1504,"completion_tokens":9}}`), at(32, done)),
		both(firstToken(1, KindContent), tokensAre(9, SourceUsage), promptIs(1504), outcomeIs(OK), finishIs("stop"), evidenceIs(3), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "role", r.Role.OK, false)
			same(t, "longest gap", r.LongestGap, ms(28))
		})},
	{"audio-hung-up-within-a-segment", exchange{path: transcriptionPath, cause: CauseClient, frames: []frame{at(1, segment("a", segmentEnds)), at(2, segment("b", ""))}}, outcomeIs(ClientCancelled)},
	{"audio-hung-up-behind-a-segment", exchange{path: transcriptionPath, cause: CauseClient, frames: []frame{at(1, segment("a", segmentEnds)), at(2, segment("b", segmentEnds))}}, outcomeIs(ClientCancelledAfterFinish)},
	{"audio-cut-within-a-segment", of(transcriptionPath, at(1, segment("a", segmentEnds)), at(2, segment("b", ""))), outcomeIs(Truncated)},
	{"audio-error", of(transcriptionPath, at(1, anError), at(1, done)), errorIs("InternalServerError")},
	{"audio-of-a-duration", exchange{path: "/v1/audio/translations", contentType: jsonType, frames: []frame{raw(5, `{"text":"a","usage":{"type":"duration","seconds":3}}`)}},
		both(outcomeIs(OK), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "output tokens", r.OutputTokens.OK, false)
			same(t, "choices", r.Choices, 0)
		})},
	{"audio-as-subtitles", exchange{path: transcriptionPath, contentType: "text/vtt; charset=utf-8", encoding: "gzip", frames: []frame{raw(5, "\x1f\x8b")}},
		both(outcomeIs(OK), func(t *testing.T, r *Record) { t.Helper(); same(t, "skipped", r.Skipped, 0) })},
	{"audio-as-html", exchange{path: transcriptionPath, contentType: "text/html", frames: []frame{raw(5, "<html>")}}, outcomeIs(Unparsed)},

	{"generate-ids-are-the-content", of(generatePath, at(1, `{"request_id":"g1","choices":[{"index":0,"token_ids":[11,12],"finish_reason":null}],"usage":null}`), at(2, `{"request_id":"g1","choices":[{"index":0,"token_ids":[13],"finish_reason":null}]}`), at(3, done)),
		both(firstToken(1, KindToken), tokensAre(3, SourceTokenIDs), outcomeIs(OKNoFinish), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "id", r.ResponseID, Some("g1"))
			same(t, "answer", r.FirstAnswer, ms(1))
			same(t, "model", r.Model.OK, false)
		})},
	{"generate-rust-finish-without-tokens", of(generatePath, at(1, `{"request_id":"g1","choices":[{"index":0,"token_ids":[11]}]}`), at(2, `{"request_id":"g1","choices":[{"index":0,"token_ids":[],"finish_reason":"length"}]}`), at(3, done)),
		both(outcomeIs(OK), tokensAre(1, SourceTokenIDs), finishIs("length"), evidenceIs(1))},
	{"generate-rust-error", of(generatePath, at(1, `{"error":{"message":"m","type":"server_error","param":null,"code":"server_error"}}`)), errorIs("server_error")},
	{"generate-with-text", of(generatePath, at(1, `{"request_id":"g1","output_mode":"text","choices":[{"index":0,"token_ids":[11],"text":""}]}`), at(2, `{"request_id":"g1","output_mode":"text","choices":[{"index":0,"token_ids":[12],"text":"ab"}]}`)),
		both(firstToken(1, KindToken), tokensAre(2, SourceTokenIDs))},
	{"vllm-omni-2313-generate-all-ids-so-far", of(generatePath, at(1, `{"choices":[{"token_ids":[1]}]}`), at(2, `{"choices":[{"token_ids":[1,2]}]}`), at(3, `{"choices":[{"token_ids":[1,2,3]}]}`)), tokensAre(3, SourceTokenIDs)},
	{"generate-in-one-piece", exchange{path: generatePath, contentType: jsonType, frames: []frame{raw(5, `{"request_id":"g1","model":"m","choices":[{"index":0,"finish_reason":"length","token_ids":[1,2]}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`)}},
		both(outcomeIs(OK), tokensAre(2, SourceUsage), promptIs(4), func(t *testing.T, r *Record) { t.Helper(); same(t, "id", r.ResponseID, Some("g1")) })},

	{"embeddings", exchange{path: embeddingsPath, contentType: jsonType, frames: []frame{raw(5, `{"id":"embd-1","object":"list","model":"m","data":[{"object":"embedding","embedding":[0.25]}],"usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0,"prompt_tokens_details":null}}`)}},
		both(outcomeIs(OK), promptIs(4), tokensAre(0, SourceUsage), func(t *testing.T, r *Record) {
			t.Helper()
			same(t, "id", r.ResponseID, Some("embd-1"))
			same(t, "model", r.Model, Some("m"))
			same(t, "choices", r.Choices, 0)
			same(t, "reason", r.NoFirstToken, NoTokenReason(""))
		})},
	{"rerank", exchange{path: "/v2/rerank", contentType: jsonType, frames: []frame{raw(5, `{"id":"rerank-1","model":"m","usage":{"prompt_tokens":4,"total_tokens":4},"results":[{"index":0}]}`)}},
		both(outcomeIs(OK), promptIs(4), func(t *testing.T, r *Record) { t.Helper(); same(t, "output tokens", r.OutputTokens.OK, false) })},
	{"embeddings-as-bytes", exchange{path: embeddingsPath, contentType: "application/octet-stream", frames: []frame{raw(5, "\x00\x01")}}, outcomeIs(OK)},
	{"embeddings-of-something-else", exchange{path: embeddingsPath, contentType: jsonType, frames: []frame{raw(5, `{"choices":[{"finish_reason":"stop"}]}`)}}, outcomeIs(Unparsed)},
	{"embeddings-asked-as-a-stream-and-busy", exchange{path: embeddingsPath, status: 503, contentType: jsonType, ask: dialect.Request{Stream: true}, frames: []frame{raw(5, `{"error":{"type":"Service Unavailable"}}`)}},
		both(outcomeIs(HTTPError), func(t *testing.T, r *Record) { t.Helper(); same(t, "reason", r.NoFirstToken, NoTokenReason("")) })},

	{"unknown-path-chat", of("/invocations", at(1, role(0)), at(2, chunk(0, text("a"))), at(3, done)),
		both(dialectIs(dialect.Chat), firstToken(2, KindContent), outcomeIs(OKNoFinish), func(t *testing.T, r *Record) { t.Helper(); same(t, "operation", r.Operation(), OperationOther) })},
	{"unknown-path-chat-by-its-object", of("/invocations", at(1, `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`), at(3, done)),
		both(dialectIs(dialect.Chat), firstToken(1, KindContent), outcomeIs(OK))},
	{"unknown-path-chat-cut", of("/invocations", at(1, chunk(0, text("a")))), outcomeIs(Truncated)},
	{"unknown-path-completions", of("/x", at(1, completion(0, "a")), at(2, done)), both(dialectIs(dialect.Completions), firstToken(1, KindContent))},
	{"unknown-path-responses", of("/x", lifecycle(1, "response.created"), delta(2, outputText, "a"), completed(3, 4, "")), both(dialectIs(dialect.Responses), firstToken(2, KindContent), tokensAre(4, SourceUsage))},
	{"unknown-path-messages", of("/x", messageStart(1, startUsage), textDelta(2, "a"), messageDelta(3, `{"output_tokens":4}`), messageStop(4)), both(dialectIs(dialect.Messages), tokensAre(4, SourceUsage))},
	{"unknown-path-audio", of("/x", at(1, segment("a", segmentEnds)), at(2, done)), both(dialectIs(dialect.Transcription), firstToken(1, KindContent))},
	{"unknown-path-generate", of("/x", at(1, `{"request_id":"g","choices":[{"token_ids":[1]}]}`), at(2, done)), both(dialectIs(dialect.Generate), firstToken(1, KindToken))},
	{"unknown-path-error", of("/x", at(1, anError), at(2, done)), errorIs("InternalServerError")},
	{"unknown-path-error-type", of("/x", typed(1, "error", "boom")), errorIs("")},
	{"unknown-path-error-of-json-rpc", of("/mcp", at(1, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}`)), both(dialectIs(dialect.Unknown), outcomeIs(OK))},
	{"unknown-path-only-the-first-event-tells", of("/x", at(1, `{"status":"queued"}`), at(2, chunk(0, text("a")))), both(dialectIs(dialect.Unknown), outcomeIs(OK), evidenceIs(0))},
	{"cohere-chat", of("/cohere/v2/chat", at(1, `{"type":"message-start","id":"c"}`), at(2, `{"type":"content-delta","delta":{"message":{"content":{"text":"a"}}}}`), at(3, done)), both(dialectIs(dialect.Unknown), outcomeIs(OK))},
	{"unknown-path-read-by-a-get", exchange{path: "/x", method: "GET", frames: []frame{at(1, chunk(0, text("a")))}}, both(outcomeIs(OK), evidenceIs(0))},
	{"unknown-path-broke-off", exchange{path: "/x", cause: CauseUpstream, frames: []frame{at(1, chunk(0, text("a")))}}, both(outcomeIs(UpstreamReset), tokensAre(1, SourceEstimate))},
}

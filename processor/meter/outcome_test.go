package meter

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

var (
	begun    = at(1, role(0))
	answered = at(2, chunk(0, text("a")))
	finished = at(3, chunk(0, nothing, stop))
	ended    = at(4, done)
)

const (
	unknownPath = "/v1/else"
	jsonType    = "application/json"
	answerJSON  = `{"id":"c1","model":"m","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
	errorJSON   = `{"error":{"message":"m","type":"NotFoundError","code":404}}`
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	f := func(what string, want Outcome, class Class, x exchange) {
		t.Helper()
		r := play(t, x)
		same(t, what, r.Outcome, want)
		same(t, what+": class", r.Class(), class)
	}
	frames := func(list ...frame) []frame { return list }

	f("rejected", Rejected, ClassRejected, exchange{cause: CauseRejected, status: 503, contentType: jsonType})
	f("404", HTTPError, ClassRefused, exchange{status: 404, contentType: jsonType, frames: frames(raw(1, errorJSON))})
	f("429", HTTPError, ClassFailed, exchange{status: 429})
	f("500", HTTPError, ClassFailed, exchange{status: 500, contentType: "text/plain", frames: frames(raw(1, "x"))})
	f("503 of Envoy, flagged", HTTPError, ClassFailed, exchange{status: 503, cause: CauseUpstream})
	f("504 of Envoy, flagged", HTTPError, ClassFailed, exchange{status: 504, cause: CauseTimeout})
	f("error in a stream", ErrorInStream, ClassFailed, exchange{frames: frames(begun, answered, at(3, anError), ended)})
	f("error, then hung up", ErrorInStream, ClassFailed, exchange{frames: frames(at(1, anError)), cause: CauseClient})
	f("error of a 200 that is no stream", ErrorInStream, ClassFailed, exchange{contentType: jsonType, frames: frames(raw(1, errorJSON))})
	f("mark and finish", OK, ClassDone, exchange{frames: frames(begun, answered, finished, ended)})
	f("mark and finish, then hung up", OK, ClassDone, exchange{frames: frames(begun, answered, finished, ended), cause: CauseClient})
	f("mark and finish, then reset", OK, ClassDone, exchange{frames: frames(begun, answered, finished, ended), cause: CauseUpstream})
	f("mark and one finish of two", OK, ClassDone, exchange{frames: frames(at(1, role(1)), finished, ended)})
	f("mark, no finish", OKNoFinish, ClassDone, exchange{frames: frames(begun, answered, ended)})
	f("mark only", OKNoFinish, ClassDone, exchange{frames: frames(ended)})
	f("hung up after the finish", ClientCancelledAfterFinish, ClassDone, exchange{frames: frames(begun, finished), cause: CauseClient})
	f("hung up after one finish of two", ClientCancelled, ClassCancelled, exchange{frames: frames(at(1, role(1)), finished), cause: CauseClient})
	f("hung up", ClientCancelled, ClassCancelled, exchange{frames: frames(begun, answered), cause: CauseClient})
	f("hung up before the response", ClientCancelled, ClassCancelled, exchange{noHead: true, cause: CauseClient, end: 9})
	f("hung up on a body", ClientCancelled, ClassCancelled, exchange{contentType: jsonType, frames: frames(raw(1, answerJSON[:40])), cause: CauseClient})
	f("reset", UpstreamReset, ClassFailed, exchange{frames: frames(begun, answered, finished), cause: CauseUpstream})
	f("timeout", Timeout, ClassFailed, exchange{frames: frames(begun), cause: CauseTimeout})
	f("lost", Lost, ClassUnknown, exchange{frames: frames(begun), cause: CauseLost})
	f("aborted", Aborted, ClassCancelled, exchange{frames: frames(begun, finished), cause: CauseAborted})
	f("no mark, every choice finished", OK, ClassDone, exchange{frames: frames(begun, answered, finished)})
	f("no event", Empty, ClassFailed, exchange{})
	f("nothing but keep-alives", Empty, ClassFailed, exchange{frames: frames(raw(1, ": ping\n\n"))})
	f("no event on another path", Empty, ClassFailed, exchange{path: unknownPath})
	f("no mark, no finish", Truncated, ClassFailed, exchange{frames: frames(begun, answered)})
	f("no mark, one finish of two", Truncated, ClassFailed, exchange{frames: frames(at(1, role(1)), finished)})
	f("nothing that can be read", Truncated, ClassFailed, exchange{frames: frames(at(1, "x"))})
	f("empty 200", Unparsed, ClassUnknown, exchange{contentType: jsonType})
	f("text", Unparsed, ClassUnknown, exchange{contentType: "text/html", frames: frames(raw(1, "<p>"))})
	f("other JSON", Unparsed, ClassUnknown, exchange{contentType: jsonType, frames: frames(raw(1, `{"a":1}`))})
	f("half a JSON", Unparsed, ClassUnknown, exchange{contentType: jsonType, frames: frames(raw(1, answerJSON[:40]))})
	f("a stream that says it is JSON", Unparsed, ClassUnknown, exchange{contentType: jsonType, frames: frames(begun, answered)})
	f("compressed stream", Unparsed, ClassUnknown, exchange{encoding: "gzip", frames: frames(raw(1, "\x1f\x8b"))})
	f("compressed stream of nothing", Empty, ClassFailed, exchange{encoding: "gzip"})
	f("compressed JSON", Unparsed, ClassUnknown, exchange{contentType: jsonType, encoding: "br", frames: frames(raw(1, "\x1f"))})
	f("compressed, on another path", OK, ClassDone, exchange{path: unknownPath, encoding: "gzip", frames: frames(raw(1, "\x1f"))})
	f("a coding that is none", OK, ClassDone, exchange{encoding: "identity", frames: frames(begun, finished)})
	f("JSON", OK, ClassDone, exchange{contentType: jsonType, frames: frames(raw(1, answerJSON))})
	f("JSON without a finish", OK, ClassDone, exchange{contentType: jsonType, frames: frames(raw(1, `{"choices":[{"message":{}}]}`))})
	f("redirect", OK, ClassDone, exchange{status: 307, contentType: "text/html"})
	f("another path", OK, ClassDone, exchange{path: unknownPath, contentType: jsonType, frames: frames(raw(1, `{`))})
	f("a stream on another path", OK, ClassDone, exchange{path: unknownPath, frames: frames(at(1, "x"))})
	f("a preflight", OK, ClassDone, exchange{method: "OPTIONS", contentType: "text/plain"})
	f("an end without a response", Aborted, ClassCancelled, exchange{noHead: true})
}

// At a clean end a tail without its blank line counts, if it is whole.
func TestTail(t *testing.T) {
	t.Parallel()
	f := func(what string, want Outcome, events int64, cause Cause, tail string) {
		t.Helper()
		r := play(t, exchange{frames: []frame{begun, finished, raw(5, tail)}, cause: cause, end: 9})
		same(t, what, r.Outcome, want)
		same(t, what+": events", r.Events, events)
	}
	f("done", OK, 3, CauseEnd, "data: [DONE]")
	f("done, and hung up", ClientCancelledAfterFinish, 2, CauseClient, "data: [DONE]")
	f("a whole event", ErrorInStream, 3, CauseEnd, "data: "+anError+"\n")
	f("a whole event, and reset", UpstreamReset, 2, CauseUpstream, "data: "+anError+"\n")
	f("half an event", OK, 2, CauseEnd, "data: "+anError[:20])
	f("a bare word", OK, 2, CauseEnd, "data: x\n")

	r := play(t, exchange{frames: []frame{begun, raw(5, "data: "+chunk(0, text("a")))}, end: 9})
	same(t, "the time of a tail is its last byte's", r.FirstToken, ms(5))
	same(t, "end", r.End, ms(9).V)
}

func TestErrorType(t *testing.T) {
	t.Parallel()
	f := func(what, want string, x exchange) {
		t.Helper()
		same(t, what, play(t, x).ErrorType, want)
	}
	event := func(data string) exchange { return exchange{frames: []frame{at(1, data)}} }
	body := func(status int, data string) exchange {
		return exchange{status: status, contentType: jsonType, frames: []frame{raw(1, data)}}
	}
	long := ""
	for range 100 {
		long += "äöü"
	}
	f("type", "InternalServerError", event(anError))
	f("code", "504", event(`{"error":{"message":"m","code":504}}`))
	f("text", "", event(`{"error":"secret"}`))
	f("long", long[:128], event(`{"error":{"type":"`+long+`"}}`))
	f("the first", "A", exchange{frames: []frame{at(1, `{"error":{"type":"A"}}`, `{"error":{"type":"B"}}`)}})
	f("JSON", "NotFoundError", body(404, errorJSON))
	f("old JSON", "NotFoundError", body(404, `{"object":"error","message":"m","type":"NotFoundError","code":404}`))
	f("API key", "", body(401, `{"error":"Unauthorized"}`))
	f("FastAPI's own", "", body(404, `{"detail":"Not Found"}`))
	f("no JSON", "", body(502, `bad gateway`))
}

func TestNoFirstToken(t *testing.T) {
	t.Parallel()
	f := func(what string, want NoTokenReason, x exchange) {
		t.Helper()
		r := play(t, x)
		same(t, what, r.NoFirstToken, want)
		same(t, what+": no TTFT", r.FirstToken.OK, false)
	}
	stream := dialect.Request{Stream: true}
	silent := []frame{begun}
	f("cancelled", NoTokenCancelled, exchange{frames: silent, cause: CauseClient})
	f("cancelled before the response", NoTokenCancelled, exchange{noHead: true, ask: stream, cause: CauseClient})
	f("aborted", NoTokenAborted, exchange{frames: silent, cause: CauseAborted})
	f("error", NoTokenError, exchange{frames: []frame{at(1, anError), ended}})
	f("failed", NoTokenError, exchange{status: 503, contentType: jsonType, ask: stream})
	f("reset", NoTokenReset, exchange{frames: silent, cause: CauseUpstream})
	f("timeout", NoTokenTimeout, exchange{frames: silent, cause: CauseTimeout})
	f("hidden", NoTokenHidden, exchange{frames: []frame{begun, finished, at(4, final(24), done)}})
	f("hidden, then hung up", NoTokenHidden, exchange{frames: []frame{begun, finished, at(4, final(24))}, cause: CauseClient})
	f("no token at all", NoTokenEmpty, exchange{frames: []frame{begun, finished, at(4, final(0), done)}})
	f("nothing", NoTokenEmpty, exchange{})
	f("truncated", NoTokenTruncated, exchange{frames: silent})

	f("refused", "", exchange{status: 404, contentType: jsonType, ask: stream})
	f("rejected", "", exchange{cause: CauseRejected, status: 503, ask: stream})
	f("lost", "", exchange{frames: silent, cause: CauseLost})
	f("compressed", "", exchange{encoding: "gzip", frames: []frame{raw(1, "x")}})
	f("not a stream", "", exchange{contentType: jsonType, frames: []frame{raw(1, answerJSON)}})
	f("not asked for as one", "", exchange{noHead: true, cause: CauseClient})
	f("another path", "", exchange{path: unknownPath, frames: []frame{at(1, "x")}})

	r := play(t, exchange{frames: []frame{begun, answered}, cause: CauseClient})
	same(t, "there is one", r.NoFirstToken, "")
}

func TestAnswerJSON(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{contentType: jsonType, frames: []frame{raw(3, answerJSON[:70]), raw(4, answerJSON[70:])}, end: 5})
	tokens(t, r, 2, SourceUsage)
	same(t, "prompt", r.PromptTokens, Some[int64](5))
	same(t, "model", r.Model, Some("m"))
	same(t, "id", r.ResponseID, Some("c1"))
	same(t, "choices", r.Choices, 1)
	same(t, "finish", r.Finish[0], Some("stop"))
	same(t, "first byte", r.FirstByte, ms(3))
	same(t, "first event", r.FirstEvent.OK, false)
	same(t, "first token", r.FirstToken.OK, false)
	same(t, "stream", r.Stream, false)
}

func TestUsedAfterClose(t *testing.T) {
	t.Parallel()
	uses := map[string]func(*Meter){
		"Ask":      func(m *Meter) { m.Ask(dialect.Request{}) },
		"Headers":  func(m *Meter) { m.Headers(0, 200, "", "") },
		"Observe":  func(m *Meter) { m.Observe(0, nil) },
		"Routed":   func(m *Meter) { m.Routed(Route{}) },
		"Snapshot": func(m *Meter) { m.Snapshot(0) },
		"Close":    func(m *Meter) { m.Close(0, CauseEnd) },
	}
	for name, use := range uses {
		m := New(Start{}, Options{})
		m.Close(0, CauseEnd)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s after Close did not panic", name)
				}
			}()
			use(m)
		}()
	}
}

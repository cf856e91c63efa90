package meter

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// That each rule is held by a test, here or nearby, is what internal/rules shows.

// d returns the number of tokens that the only evidence event of a stream is
// told to have; 0: not known; -1: there is no evidence.
func d(t *testing.T, ask dialect.Request, data string) int32 {
	t.Helper()
	r := play(t, exchange{ask: ask, frames: []frame{at(1, role(0)), at(2, data)}})
	return onlyChunk(t, r)
}

func onlyChunk(t *testing.T, r *Record) int32 {
	t.Helper()
	tokens := int32(-1)
	for _, k := range r.Marks {
		if k.Kind == MarkChunk {
			if tokens != -1 {
				t.Fatalf("more than one chunk: %+v", r.Marks)
			}
			tokens = k.Tokens
		}
	}
	return tokens
}

func TestEvidenceByStrength(t *testing.T) {
	t.Parallel()
	const ids, three = `"token_ids":[1,2]`, `"logprobs":{"content":[{},{},{}]}`
	f := func(what, data string, want int32) {
		t.Helper()
		same(t, what, d(t, dialect.Request{}, data), want)
	}
	f("growth before ids", counted(0, 4, text("x"), ids, three), 4)
	f("ids before logprobs", chunk(0, text("x"), ids, three), 2)
	f("logprobs", chunk(0, text("x"), three), 3)
	f("content", chunk(0, text("x")), 0)
	f("reasoning", chunk(0, thought), 0)
	f("refusal", chunk(0, `{"refusal":"x"}`), 0)
	f("tool", chunk(0, toolName), 0)
	f("hidden by growth", counted(0, 4, nothing), 4)
	f("hidden by ids", chunk(0, nothing, ids), 2)
	f("hidden by logprobs", chunk(0, nothing, three), 3)
	f("no growth, but text", counted(0, 0, text("x")), 0)
}

func TestNeverEvidence(t *testing.T) {
	t.Parallel()
	f := func(what, data string) {
		t.Helper()
		same(t, what, d(t, dialect.Request{}, data), -1)
	}
	f("role", role(0))
	f("empty delta", chunk(0, nothing))
	f("empty text", chunk(0, emptyText))
	f("null text", chunk(0, `{"content":null,"reasoning_content":null,"tool_calls":[]}`))
	f("finish", chunk(0, nothing, stop))
	f("usage", final(9))
	f("null ids and logprobs", chunk(0, nothing, `"token_ids":null,"logprobs":null`))
	f("prompt ids", `{"choices":[{"index":0,"delta":{}}],"prompt_token_ids":[1,2]}`)
	f("error", anError)
	f("done", done)
	f("no growth", counted(0, 0, nothing))
}

// Two kinds of text in one event are of the first that applies.
func TestKind(t *testing.T) {
	t.Parallel()
	f := func(data string, want Kind) {
		t.Helper()
		r := play(t, exchange{frames: []frame{at(1, data)}})
		same(t, data, r.FirstTokenKind, want)
		answer := want == KindContent || want == KindToolCall
		same(t, data+": is an answer", r.FirstAnswer.OK, answer)
	}
	f(chunk(0, `{"reasoning":"x","content":"y"}`), KindReasoning)
	f(chunk(0, `{"reasoning_content":"x"}`), KindReasoning)
	f(chunk(0, `{"content":"x","tool_calls":[{"id":"a"}]}`), KindContent)
	f(chunk(0, `{"refusal":"x"}`), KindContent)
	f(chunk(0, toolName), KindToolCall)
	f(chunk(0, `{"tool_calls":[{"function":{"arguments":"{"}}]}`), KindToolCall)
	f(chunk(0, nothing, oneLogprob), KindHidden)
}

// A role with text is both.
func TestRoleWithText(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{at(1, chunk(0, `{"role":"assistant","content":"x"}`))}})
	same(t, "role", r.Role, ms(1))
	same(t, "first token", r.FirstToken, ms(1))
}

// Growth is by choice, and from the count before.
func TestGrowth(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{
		at(1, counted(0, 0, `{"role":"assistant","content":""}`)),
		at(2, counted(1, 0, `{"role":"assistant","content":""}`)),
		at(3, counted(0, 1, text("a"))),
		at(4, counted(1, 3, text("b"))), // two were hidden by a parser
		at(5, counted(0, 2, text("c"))),
		at(6, counted(0, 2, nothing)), // none came
		at(7, counted(1, 1, text("d"))),
	}})
	var got []int32
	for _, k := range r.Marks {
		if k.Kind == MarkChunk {
			got = append(got, k.Tokens)
		}
	}
	same(t, "chunks", len(got), 4)
	for i, want := range []int32{1, 3, 1, 0} {
		same(t, "tokens", got[i], want)
	}
	// The last count of each choice, even where it went back.
	tokens(t, r, 3, SourceContinuous)
	same(t, "prompt", r.PromptTokens, Some[int64](5))
}

// A count that begins when tokens have come already is no one event's growth.
func TestGrowthFromTheMiddle(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{
		at(1, chunk(0, text("a"))), at(2, chunk(0, text("b"))),
		at(3, counted(0, 5, text("c"))), at(4, counted(0, 6, text("d"))),
	}})
	var got []int32
	for _, k := range r.Marks {
		if k.Kind == MarkChunk {
			got = append(got, k.Tokens)
		}
	}
	for i, want := range []int32{0, 0, 0, 1} {
		same(t, "tokens", got[i], want)
	}
	tokens(t, r, 6, SourceContinuous)
}

func TestFinalUsage(t *testing.T) {
	t.Parallel()
	f := func(what string, events int64, s Source, frames ...frame) {
		t.Helper()
		r := play(t, exchange{frames: frames})
		same(t, what+": evidence", r.EvidenceEvents[0], events)
		tokens(t, r, 9, s)
	}
	f("without choices", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, final(9)))
	f("without the member choices", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, `{"usage":{"completion_tokens":9}}`))
	f("on the finish chunk", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, counted(0, 9, nothing, stop)))
	f("first of all, on the finish chunk", 0, SourceUsage, at(1, role(0)), at(2, counted(0, 9, nothing, stop)))
	f("behind the finish chunk", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, chunk(0, nothing, stop)), at(3, counted(0, 9, nothing)))
	f("behind the finish chunk, with no token before", 0, SourceUsage, at(1, role(0)), at(2, chunk(0, nothing, stop)), at(3, counted(0, 9, nothing)))
	f("twice", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, counted(0, 7, nothing, stop)), at(3, counted(0, 9, nothing)))
	f("beside an empty delta", 1, SourceUsage, at(1, chunk(0, text("a"))), at(2, counted(0, 9, nothing)))
	f("with text on the finish chunk", 1, SourceContinuous, at(1, counted(0, 9, text("a"), stop)))
	f("running up to the finish chunk", 2, SourceContinuous, at(1, counted(0, 8, text("a"))), at(2, counted(0, 9, nothing, stop)))
	f("running and final", 1, SourceUsage, at(1, counted(0, 8, text("a"))), at(2, final(9)))
}

func TestChatEcho(t *testing.T) {
	t.Parallel()
	asked := dialect.Request{Echo: true, LastRole: "assistant", N: -1, MaxTokens: -1}
	f := func(what string, ask dialect.Request, first Opt[int], frames ...frame) {
		t.Helper()
		r := play(t, exchange{ask: ask, frames: frames})
		want := Opt[int]{}
		if r.FirstToken.OK {
			want = Some(int(r.FirstToken.V.Milliseconds()))
		}
		same(t, what, want, first)
	}
	echo, token := at(2, chunk(0, text("prompt"))), at(3, chunk(0, text("a")))
	f("last message from the assistant", asked, Some(3), at(1, role(0)), echo, token)
	f("no generation prompt", dialect.Request{Echo: true, NoGenerationPrompt: true, LastRole: "user"}, Some(3), at(1, role(0)), echo, token)
	f("last message from the user", dialect.Request{Echo: true, LastRole: "user"}, Some(2), at(1, role(0)), echo, token)
	f("no echo", dialect.Request{LastRole: "assistant"}, Some(2), at(1, role(0)), echo, token)
	f("nothing but the echo", asked, Opt[int]{}, at(1, role(0)), echo)
	f("ids beside it", asked, Some(2), at(2, chunk(0, text("a"), `"token_ids":[1]`)), token)
	f("logprobs beside it", asked, Some(2), at(2, chunk(0, text("a"), oneLogprob)), token)
	f("growth beside it", asked, Some(2), at(2, counted(0, 1, text("a"))), token)
	f("no growth beside it", asked, Some(3), at(2, counted(0, 0, text("prompt"))), at(3, counted(0, 1, text("a"))))
	f("reasoning comes first", asked, Some(2), at(2, chunk(0, thought)), token)

	r := play(t, exchange{ask: asked, frames: []frame{
		at(1, role(0), role(1)), at(2, chunk(0, text("prompt"))), at(3, chunk(1, text("prompt"))),
		at(4, chunk(1, text("a"))), at(5, chunk(0, text("b")), chunk(0, text("c"))),
	}})
	same(t, "first token of two choices", r.FirstToken, ms(4))
	same(t, "choice 0", r.EvidenceEvents[0], 2)
	same(t, "choice 1", r.EvidenceEvents[1], 1)
}

// After a token, content without ids is no echo any more.
func TestEchoIsOverAfterAToken(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{ask: dialect.Request{Echo: true, LastRole: "assistant"}, frames: []frame{
		at(1, chunk(0, nothing, `"token_ids":[1]`)), at(2, chunk(0, text("a"))),
	}})
	same(t, "evidence", r.EvidenceEvents[0], 2)
}

func TestCompletionsEcho(t *testing.T) {
	t.Parallel()
	asked := dialect.Request{Echo: true, MaxTokens: 9}
	f := func(what string, ask dialect.Request, data string, want int32) {
		t.Helper()
		same(t, what, onlyChunk(t, play(t, exchange{path: "/v1/completions", ask: ask, frames: []frame{at(1, data)}})), want)
	}
	const logprobs = `"logprobs":{"tokens":["p","q","r","a"]}`
	f("the first event has a token", asked, completion(0, "prompt a"), 0)
	f("prompt by its ids", asked, completion(0, "prompt a", logprobs, `"prompt_token_ids":[1,2,3]`), 1)
	f("prompt by usage", asked, `{"choices":[{"text":"prompt a",`+logprobs+`}],"usage":{"prompt_tokens":3}}`, 1)
	f("prompt not known", asked, completion(0, "prompt a", logprobs), 0)
	f("prompt not among them", asked, completion(0, "a", `"logprobs":{"tokens":["a"]},"prompt_token_ids":[1,2,3]`), 1)
	f("nothing but the prompt", asked, completion(0, "prompt", `"logprobs":{"tokens":["p","q","r"]},"prompt_token_ids":[1,2,3]`), 0)
	f("ids", asked, completion(0, "prompt a", logprobs, `"token_ids":[1,2]`), 2)
	f("no token asked for", dialect.Request{Echo: true}, completion(0, "prompt", logprobs, length), -1)
	f("no echo", dialect.Request{MaxTokens: 9}, completion(0, "a", logprobs), 4)
	f("chat's rule is not for completions", dialect.Request{Echo: true, MaxTokens: 9, NoGenerationPrompt: true}, completion(0, "prompt a"), 0)

	r := play(t, exchange{path: "/v1/completions", ask: asked, frames: []frame{
		at(1, completion(0, "prompt a", logprobs, `"prompt_token_ids":[1,2,3]`)),
		at(2, completion(0, "b", logprobs, stop)), at(3, done),
	}})
	tokens(t, r, 5, SourceLogprobs)
	r = play(t, exchange{path: "/v1/completions", ask: asked, frames: []frame{
		at(1, completion(0, "prompt a", logprobs)), at(2, completion(0, "b", logprobs)),
	}})
	// What is only partly known is an estimate.
	tokens(t, r, 2, SourceEstimate)
}

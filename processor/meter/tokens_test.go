package meter

import (
	"slices"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

func TestSourceOrder(t *testing.T) {
	t.Parallel()
	f := func(what string, n int64, s Source, frames ...frame) {
		t.Helper()
		r := play(t, exchange{frames: frames})
		same(t, what, r.OutputTokens, Some(n))
		same(t, what, r.OutputSource, s)
	}
	all := `"token_ids":[1,2],"logprobs":{"content":[{},{},{}]}`
	f("usage", 9, SourceUsage, at(1, counted(0, 4, text("a"), all)), at(2, final(9)))
	f("continuous usage", 4, SourceContinuous, at(1, counted(0, 4, text("a"), all)))
	f("ids", 2, SourceTokenIDs, at(1, chunk(0, text("a"), all)))
	f("logprobs", 3, SourceLogprobs, at(1, chunk(0, text("a"), `"logprobs":{"content":[{},{},{}]}`)))
	f("estimate", 1, SourceEstimate, at(1, chunk(0, text("a"))))
	f("usage of null", 1, SourceEstimate, at(1, chunk(0, text("a"))), at(2, `{"choices":[],"usage":{"completion_tokens":null}}`))
	f("usage of zero", 0, SourceUsage, at(1, chunk(0, text("a"))), at(2, final(0)))
	f("the last usage", 7, SourceUsage, at(1, chunk(0, text("a"))), at(2, final(9)), at(3, final(7)))
	f("sum over choices", 7, SourceContinuous, at(1, counted(0, 4, text("a"))), at(2, counted(1, 3, text("b"))))
	f("no growth", 0, SourceContinuous, at(1, counted(0, 0, `{"role":"assistant"}`)))
	f("ids of some", 2, SourceEstimate, at(1, chunk(0, text("a"), `"token_ids":[1,2]`)), at(2, chunk(0, text("b"))))
	f("logprobs of some choices", 2, SourceEstimate, at(1, chunk(0, text("a"), oneLogprob)), at(2, chunk(1, text("b"))))
	f("running usage of some choices", 2, SourceEstimate, at(1, counted(0, 4, text("a"))), at(2, chunk(1, text("b"))))
	f("running usage of the choice with tokens", 4, SourceContinuous, at(1, counted(0, 4, text("a"))), at(2, role(1)))
	f("usage beside several choices", 9, SourceUsage,
		at(1, `{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}],"usage":{"completion_tokens":9}}`))
	f("usage of a choice that is not followed", 1, SourceEstimate,
		at(1, chunk(0, text("a")), `{"choices":[{"index":500}],"usage":{"completion_tokens":9}}`))

	r := play(t, exchange{frames: []frame{begun, ended}})
	same(t, "nothing", r.OutputTokens.OK, false)
	same(t, "nothing", r.OutputSource, SourceNone)
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	f := func(what string, want int64, data ...string) {
		t.Helper()
		r := play(t, exchange{frames: []frame{at(1, role(0)), at(2, data...)}})
		tokens(t, r, want, SourceEstimate)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	a := chunk(0, text("a"))
	f("an event is a token", 2, a, a)
	f("so is an empty text", 3, a, chunk(0, emptyText), a)
	f("and a stop", 2, a, chunk(0, nothing, stop))
	f("an empty text with a stop is one", 2, a, chunk(0, emptyText, stop))
	f("a text with a stop is one", 2, a, chunk(0, text("b"), stop))
	f("the limit implies none", 1, a, chunk(0, nothing, length))
	f("nor does a tool's finish", 2, chunk(0, toolName), a, chunk(0, nothing, `"finish_reason":"tool_calls"`))
	f("null is no empty text", 1, a, chunk(0, `{"content":null}`))
	f("choices add up", 3, a, chunk(1, emptyText), chunk(1, text("b")))
}

// The beginning of a block has an empty text too, and stands for no token.
func TestEstimate_Messages(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{path: messagesPath, cause: CauseClient, frames: []frame{
		at(1, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
		at(2, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`),
		at(3, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}`),
	}})
	tokens(t, r, 2, SourceEstimate)
}

func TestUsageFields(t *testing.T) {
	t.Parallel()
	const whole = `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":3}}}`
	r := play(t, exchange{frames: []frame{at(1, chunk(0, text("a"))), at(2, whole)}})
	same(t, "prompt", r.PromptTokens, Some[int64](20))
	same(t, "cached", r.CachedTokens, Some[int64](16))
	same(t, "reasoning", r.ReasoningTokens, Some[int64](3))

	r = play(t, exchange{frames: []frame{at(1, chunk(0, text("a"))), at(2, final(4))}})
	same(t, "no details", r.CachedTokens.OK || r.ReasoningTokens.OK, false)

	late := `{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`
	r = play(t, exchange{frames: []frame{at(1, chunk(0, text("a"))), at(2, final(4)), at(3, late)}})
	same(t, "the final prompt stays", r.PromptTokens, Some[int64](5))

	// A running usage tells the prompt; what it says of reasoning is one choice's.
	running := `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":20,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":1}}}`
	r = play(t, exchange{frames: []frame{at(1, running)}})
	same(t, "prompt by running usage", r.PromptTokens, Some[int64](20))
	same(t, "reasoning by running usage", r.ReasoningTokens.OK, false)
}

// Ids that come with all before them are not added up.
func TestCumulativeIDs(t *testing.T) {
	t.Parallel()
	f := func(what string, want int64, lists ...string) {
		t.Helper()
		x := exchange{}
		for i, l := range lists {
			x.frames = append(x.frames, at(i, chunk(0, text("a"), `"token_ids":[`+l+`]`)))
		}
		r := play(t, x)
		tokens(t, r, want, SourceTokenIDs)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	f("each its own", 4, "1", "2", "3", "4")
	f("the same token again", 4, "7", "7", "7", "7")
	f("more each time, but others", 6, "1", "2,3", "4,5,6")
	f("one that repeats", 3, "7", "7,7")
	f("all so far", 4, "1", "1,2", "1,2,3", "1,2,3,4")
	f("all so far, several at once", 7, "1", "1,2,3", "1,2,3,4,5", "1,2,3,4,5,6,7")
	f("with spaces", 3, "1", "1, 2", "1, 2, 3")
	f("a longer number is another", 6, "1", "12,2", "12,2,3")
	f("no more after all", 10, "1", "1,2", "1,2,3", "4", "5,6", "7")
	f("none in between", 4, "1", "2", "3,4")
}

func TestFinish(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{
		at(1, role(2)), at(2, chunk(0, nothing, `"finish_reason":"content_\u0066ilter"`)), at(3, chunk(2, nothing, length)),
		at(4, chunk(2, nothing, `"finish_reason":null`)), at(5, done),
	}})
	same(t, "choices", r.Choices, 3)
	if want := []Opt[string]{Some("content_filter"), {}, Some("length")}; !slices.Equal(r.Finish, want) {
		t.Errorf("finish: got %v, want %v", r.Finish, want)
	}
	if want := []int64{0, 0, 0}; !slices.Equal(r.EvidenceEvents, want) {
		t.Errorf("evidence events: got %v, want %v", r.EvidenceEvents, want)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	m := New(Start{Path: "/v1/chat/completions?x=secret", Method: "POST", RequestID: "r1", Source: StartEnvoy}, Options{})
	m.Ask(dialect.Request{Dialect: dialect.Chat, Model: "", HasModel: true})
	m.Routed(Route{Pool: "a"})
	m.Routed(Route{Pool: "b", Attempts: 2})
	m.Headers(ms(3).V, 200, "Text/Event-Stream", "")
	m.Observe(ms(4).V, []byte("data: {\"id\":\"a\\u0062\",\"model\":\"m\"}\n\ndata: {\"id\":\"x\",\"model\":\"y\"}\n\n"))
	r := m.Close(ms(5).V, CauseEnd)
	same(t, "path", r.Path, "/v1/chat/completions")
	same(t, "request id", r.RequestID, "r1")
	same(t, "source", r.StartSource, StartEnvoy)
	same(t, "request model", r.RequestModel, Some(""))
	same(t, "response id", r.ResponseID, Some("ab"))
	same(t, "model", r.Model, Some("m"))
	same(t, "pool", r.Route.Pool, "b")
	same(t, "attempts", r.Route.Attempts, 2)
	same(t, "headers", r.Headers, ms(3))
	same(t, "stream", r.Stream, true)
	same(t, "frames that share", r.SharedFrames, 1)
}

func TestServerMetrics(t *testing.T) {
	t.Parallel()
	r := play(t, exchange{frames: []frame{at(1, `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"queue_time_ms":0.5,"mean_itl_ms":null}}`)}})
	if r.ServerMetrics == nil {
		t.Fatal("none")
	}
	same(t, "queue", r.ServerMetrics.QueueTimeMS, Some(0.5))
	same(t, "mean ITL", r.ServerMetrics.MeanITLMS.OK, false)
	same(t, "TTFT", r.ServerMetrics.TimeToFirstTokenMS.OK, false)
}

package dialect

import (
	"reflect"
	"strings"
	"testing"
)

func TestBody(t *testing.T) {
	t.Parallel()
	f := func(name, data string, want Facts) {
		t.Helper()
		for _, size := range []int{1, 3, len(data) + 1} {
			if got := bodyFacts(t, Chat, []byte(data), size); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, in pieces of %d:\n got %+v\nwant %+v", name, size, got, want)
			}
		}
	}
	n := func(n int64) Count { return Count{N: n, OK: true} }
	long := strings.Repeat(`x\u4f60\\\"`, 5_000)

	f("answer", `{"id":"c","object":"chat.completion","model":"m","choices":[{"finish_reason":"length","index":1,"message":{"content":"`+long+`","tool_calls":[{"x":{}}]},"logprobs":{"content":[{"token":"]}"}]}},{"index":0,"message":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}},"metrics":{"queue_time_ms":0.5}}`,
		Facts{
			ID: Text("c"), Model: Text("m"),
			Choices: []Choice{{Index: 1, Finish: Text("length")}, {Finish: Text("stop")}},
			Usage:   Usage{Present: true, Prompt: n(1), Completion: n(2), Cached: n(3)},
			Metrics: Metrics{Present: true, QueueTimeMS: Float{0.5, true}},
		})
	f("a name that is none", `{1:2}`, Facts{Skipped: true})
	f("a value that is none", `{"id":#}`, Facts{Skipped: true})
	f("error", `{"error":{"message":"`+long+`","type":"NotFoundError","code":404}}`,
		Facts{Error: Error{Set: true, Type: Text("NotFoundError"), Code: Text("404")}})
	f("old error", `{"object":"error","message":"m","type":"NotFoundError","param":null,"code":404}`,
		Facts{Error: Error{Set: true, Type: Text("NotFoundError"), Code: Text("404")}})
	f("error as text", `{"error":"Unauthorized"}`, Facts{Error: Error{Set: true}})
	f("FastAPI's own", `{"detail":"Not Found"}`, Facts{})
	f("FastAPI's list", `{"detail":[{"loc":["body",0],"msg":"m"}]}`, Facts{})
	f("long names", `{"`+long+`":{"id":1},"id":"c"}`, Facts{ID: Text("c")})
	f("long number", `{"usage":{"prompt_tokens":`+strings.Repeat("1", 1000)+`,"completion_tokens":2}}`,
		Facts{Usage: Usage{Present: true, Completion: n(2)}})
	f("escaped name", `{"\u0069d":"c"}`, Facts{ID: Text("c")})
	f("white space", " {\n\"id\" :\t\"c\" , \"choices\" : [ ] }\r\n", Facts{ID: Text("c")})
	f("deep in what matters", `{"usage":{"a":{"b":{"c":{"d":{"e":{"f":[[]]}}}}}},"id":"c"}`,
		Facts{ID: Text("c"), Usage: Usage{Present: true}})
	f("deep in what does not", `{"x":`+strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth)+`}`, Facts{})
	f("empty", `{}`, Facts{})

	skipped := Facts{Skipped: true}
	f("nothing", ``, skipped)
	f("not an object", `["id"]`, skipped)
	f("text", `Internal Server Error`, skipped)
	f("a stream", "data: {\"id\":\"c\"}\n\n", skipped)
	f("cut off", `{"id":"c","choices":[{"message":{"content":"x`, skipped)
	f("cut off at the end", `{"id":"c"`, skipped)
	f("something behind", `{"id":"c"}{`, skipped)
	f("crossed brackets", `{"id":"c"]`, skipped)
	f("crossed brackets in what does not matter", `{"x":[{]}}`, skipped)
	f("too deep", `{"x":`+strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1)+`}`, skipped)
	f("too much of what matters", `{"choices":[`+strings.Repeat(`{"finish_reason":"stop"},`, 10_000)+`{}]}`, skipped)
}

func TestBodyOfRecordings(t *testing.T) {
	t.Parallel()
	_, bodies := recorded(t)
	for _, data := range bodies {
		for size := 1; size < len(data); size += 1 + size/8 {
			for _, d := range all {
				bodyAgrees(t, d, data, size)
			}
		}
	}
}

// A body can be looked at before its end.
func TestBodyBeforeItsEnd(t *testing.T) {
	t.Parallel()
	b := NewBody(Chat)
	b.Write([]byte(`{"id":"c"`))
	if f := b.Facts(); !f.Skipped {
		t.Errorf("half a body: %+v", f)
	}
	b.Write([]byte(`}`))
	if f := b.Facts(); f.Skipped || string(f.ID) != "c" {
		t.Errorf("the whole: %+v", f)
	}
}

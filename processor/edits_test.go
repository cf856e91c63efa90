package processor

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// answer is what a server that knows the model as real-name says, and what a
// client is to get that asked for it as alias.
type answer struct {
	path    string
	head    []string
	in, out string
}

func answers() map[string]answer {
	event := func(data string) string { return "data: " + data + "\n\n" }
	named := func(kind, data string) string { return "event: " + kind + "\n" + event(data) }
	jsonHead := []string{":status", "200", "content-type", "application/json; charset=utf-8"}
	back := func(path string, head []string, format string) answer {
		return answer{path, head, strings.ReplaceAll(format, "%m", "real-name"), strings.ReplaceAll(format, "%m", "alias")}
	}
	const inside = `"x":"\"model\":\"real-name\"","y":{"model":"real-name"}`
	return map[string]answer{
		"chat": back("/v1/chat/completions", streamHead,
			event(`{"id":"1","model":"%m",`+inside+`,"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)+
				event(`{"id":"1","model":"%m","choices":[{"index":0,"delta":{"content":"real-name"},"finish_reason":"stop"}]}`)+doneMark),
		"completions": back("/v1/completions", jsonHead, `{"id":"1","model":"%m",`+inside+`,"choices":[{"index":0,"text":"real-name","finish_reason":"stop"}]}`),
		"responses": back("/v1/responses", streamHead,
			named("response.created", `{"response":{"id":"r","model":"%m","output":[]},"sequence_number":0,"type":"response.created"}`)+
				named("response.output_text.delta", `{"delta":"real-name","model_":"real-name","type":"response.output_text.delta"}`)+
				named("response.completed", `{"response":{"model":"%m","status":"completed","output":[{"model":"real-name"}]},"type":"response.completed"}`)),
		"messages": back("/v1/messages", streamHead,
			named("message_start", `{"type":"message_start","message":{"id":"1","model":"%m","content":[],"usage":{"input_tokens":1,"output_tokens":0}}}`)+
				named("content_block_delta", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"real-name"},"index":0}`)+
				named("message_stop", `{"type":"message_stop"}`)),
		"embeddings": back("/v1/embeddings", jsonHead, `{"object":"list","data":[{"embedding":[0.1]}],"model":"%m","usage":{"prompt_tokens":1}}`),
	}
}

// askFor are the request's headers for a path.
func askFor(path string, more ...string) []string {
	return append([]string{":method", "POST", ":path", path, "content-type", "application/json", "x-request-id", "req-1"}, more...)
}

const askAlias = `{"model":"alias","stream":true}`

// In every mode that can do so, and for every cut, a client gets its own name of
// the model back, and the record has the server's.
func TestModelIsPutBack(t *testing.T) {
	for _, request := range deciding {
		for _, response := range []bodyMode{streamed, duplex, buffered, partial} {
			for name, a := range answers() {
				for _, size := range []int{1, 40, 1000} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", request, response, name, size), func(t *testing.T) {
						b := newBench(t)
						e := b.inline(request, response)
						head := append(append([]string{}, a.head...), "content-length", fmt.Sprint(len(a.in)))
						got := play(t, e, request, response, shape{
							head: askFor(a.path, "accept-encoding", "gzip"), request: []string{askAlias},
							responseHead: head, response: pieces(a.in, size),
						})
						e.hangUp()
						if got.downstream != a.out {
							t.Errorf("the client got\n%s\nwant\n%s", got.downstream, a.out)
						}
						if got.set[acceptEncoding] != identity {
							t.Errorf("accept-encoding is set to %q", got.set[acceptEncoding])
						}
						length, set := got.responseSet["content-length"]
						if set != (response == buffered) || set && length != fmt.Sprint(len(a.out)) {
							t.Errorf("content-length is set: %t, %q", set, length)
						}
						r := b.one()
						if r.Asked.Model != "alias" || r.Model.V != "real-name" || r.Bytes != int64(len(a.in)) || r.Outcome != meter.OK && r.Outcome != meter.OKNoFinish {
							t.Errorf("the record has %q as %v, %d bytes, %s", r.Asked.Model, r.Model, r.Bytes, r.Outcome)
						}
					})
				}
			}
		}
	}
}

// Where no length was told none is set.
func TestNoLengthIsMadeUp(t *testing.T) {
	a := answers()["completions"]
	b := newBench(t)
	e := b.inline(buffered, buffered)
	got := play(t, e, buffered, buffered, shape{head: askFor(a.path), request: []string{askAlias}, responseHead: a.head, response: []string{a.in}, responseTrailers: true})
	e.hangUp()
	if _, set := got.responseSet["content-length"]; set || got.downstream != a.out {
		t.Errorf("content-length is set: %t, the client got %s", set, got.downstream)
	}
	b.one()
}

// What we did not rename, and what can't be edited, passes as it came.
func TestModelIsNotPutBack(t *testing.T) {
	a := answers()["chat"]
	refused := `{"error":{"message":"The model real-name does not exist.","param":"model","model":"real-name"},"model":"real-name"}`
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	if _, err := w.Write([]byte(a.in)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body              string
		response          bodyMode
		head, ask         []string
		answer            string
		counted, narrowed int
	}{
		"not renamed":    {body: `{"model":"m","stream":true}`, response: streamed, head: streamHead, answer: a.in},
		"no model":       {body: `{"stream":true}`, response: streamed, head: streamHead, answer: a.in},
		"no body seen":   {body: askAlias, response: none, head: streamHead, answer: a.in},
		"an error":       {body: askAlias, response: streamed, head: []string{":status", "404", "content-type", "application/json"}, answer: refused, narrowed: 1},
		"text":           {body: askAlias, response: streamed, head: []string{":status", "200", "content-type", "text/plain"}, answer: refused, narrowed: 1},
		"bytes":          {body: askAlias, response: streamed, head: []string{":status", "200"}, answer: refused, narrowed: 1},
		"coded":          {body: askAlias, response: streamed, head: append([]string{"content-encoding", "gzip"}, streamHead...), answer: coded.String(), counted: 1, narrowed: 1},
		"only coded":     {body: askAlias, response: streamed, head: append([]string{"content-encoding", "gzip"}, streamHead...), ask: []string{"accept-encoding", "gzip, identity;q=0"}, answer: coded.String(), counted: 1},
		"coded, refused": {body: askAlias, response: streamed, head: []string{":status", "404", "content-type", "application/json", "content-encoding", "gzip"}, answer: coded.String(), narrowed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			e := b.inline(buffered, tt.response)
			ask := tt.ask
			if ask == nil {
				ask = []string{"accept-encoding", "gzip, br"}
			}
			got := play(t, e, buffered, tt.response, shape{
				head: askFor(a.path, ask...), request: []string{tt.body}, responseHead: tt.head, response: pieces(tt.answer, 50),
			})
			e.hangUp()
			b.drained()
			if got.downstream != tt.answer {
				t.Errorf("the client got %q", got.downstream)
			}
			if n := b.telemetry.count(countUnrestored); n != tt.counted {
				t.Errorf("counted %d, want %d", n, tt.counted)
			}
			if _, narrowed := got.set[acceptEncoding]; narrowed != (tt.narrowed == 1) {
				t.Errorf("accept-encoding is set: %t", narrowed)
			}
		})
	}
}

// Both edits at a time: usage that we asked for is hidden, and the model has the
// client's name, in whatever pieces it comes.
func TestModelIsPutBackAndUsageHidden(t *testing.T) {
	in := strings.ReplaceAll(counted1+counted2+countLast, `data: {"choices"`, `data: {"model":"real-name","choices"`) + doneMark
	want := strings.ReplaceAll(plain1+plain2, `data: {"choices"`, `data: {"model":"alias","choices"`) + doneMark
	if in == counted1+counted2+countLast+doneMark {
		t.Fatal("the streams name no model")
	}
	for _, response := range []bodyMode{streamed, duplex} {
		for _, size := range []int{1, 7, 100, 1000} {
			b := newBench(t, askAuto)
			e := b.inline(duplex, response)
			got := play(t, e, duplex, response, shape{request: []string{askAlias}, response: pieces(in, size), responseTrailers: response == duplex})
			e.hangUp()
			if got.downstream != want {
				t.Errorf("%s, pieces of %d: the client got\n%s\nwant\n%s", response, size, got.downstream, want)
			}
			if r := b.one(); r.OutputTokens != meter.Some[int64](7) || r.Model.V != "real-name" {
				t.Errorf("the record has %v tokens, the model %v", r.OutputTokens, r.Model)
			}
		}
	}
}

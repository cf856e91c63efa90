package recording_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// everyRecording calls f with each recording, read anew.
func everyRecording(t testing.TB, f func(name string, read func() *recording.Recording)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(streams, "*.jsonl"))
	if err != nil || len(files) < 80 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		f(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func() *recording.Recording {
			rec, err := recording.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return rec
		})
	}
}

// lengths are what no filler may change.
func lengths(rec *recording.Recording) []int {
	out := []int{len(rec.Request.Body)}
	for _, p := range rec.Pieces {
		out = append(out, len(p.Data))
	}
	return out
}

// A filled recording replays to the same record, in every field, on a path that
// tells the dialect and on one that does not.
func TestFillKeepsTheRecord(t *testing.T) {
	t.Parallel()
	everyRecording(t, func(name string, read func() *recording.Recording) {
		for _, path := range []string{"", "/made/up"} {
			before, after := read(), read()
			if path != "" {
				before.Request.Path, after.Request.Path = path, path
			}
			if err := recording.Fill(after); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			checkFilled(t, name+path, before, after)
		}
	})
}

func checkFilled(t testing.TB, name string, before, after *recording.Recording) {
	t.Helper()
	if !slices.Equal(lengths(before), lengths(after)) {
		t.Errorf("%s: the pieces have other lengths", name)
	}
	want, got := recording.Replay(before, recording.Cut{}), recording.Replay(after, recording.Cut{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-recorded +filled)\n%s\n%s", name, diff, bodies(after))
	}
}

// No word of what was asked or answered remains.
func TestFillLeavesNoContent(t *testing.T) {
	t.Parallel()
	everyRecording(t, func(name string, read func() *recording.Recording) {
		before, after := read(), read()
		if err := recording.Fill(after); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		left := map[string]bool{}
		for _, w := range anyWord.FindAllString(bodies(after), -1) {
			left[strings.ToLower(w)] = true
		}
		for _, w := range contentWords(before) {
			if left[strings.ToLower(w)] {
				t.Errorf("%s: the word %q is left", name, w)
			}
		}
	})
}

var (
	contentText = regexp.MustCompile(`"(?:content|text|prompt|input|arguments|partial_json|reasoning|reasoning_content|thinking|delta|name|description|token|partial|stop|city|zone|days)":"((?:[^"\\]|\\.)*)"`)
	anyWord     = regexp.MustCompile(`[A-Za-z]{4,}`)
)

// contentWords are the words of texts that are content wherever they stand, less
// those that stand elsewhere too: in noise there are names of the API.
func contentWords(rec *recording.Recording) []string {
	var words []string
	for _, m := range contentText.FindAllStringSubmatch(bodies(rec), -1) {
		words = append(words, anyWord.FindAllString(m[1], -1)...)
	}
	elsewhere := map[string]bool{}
	for _, w := range anyWord.FindAllString(contentText.ReplaceAllString(bodies(rec), ""), -1) {
		elsewhere[strings.ToLower(w)] = true
	}
	for _, w := range []string{"content", "text", "prompt", "input", "arguments", "reasoning", "thinking", "delta", "name", "token"} {
		elsewhere[w] = true
	}
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(w string) bool { return elsewhere[strings.ToLower(w)] })
}

func bodies(rec *recording.Recording) string {
	var b bytes.Buffer
	b.Write(rec.Request.Body)
	b.WriteByte('\n')
	for _, p := range rec.Pieces {
		b.Write(p.Data)
	}
	return b.String()
}

// What is filled does not depend on how the pieces are cut.
func TestFillIgnoresCuts(t *testing.T) {
	t.Parallel()
	cut, err := recording.ParseCut("random:7")
	if err != nil {
		t.Fatal(err)
	}
	everyRecording(t, func(name string, read func() *recording.Recording) {
		whole, pieces := read(), read()
		pieces.Pieces = slices.Collect(cut.Frames(pieces.Pieces))
		for _, rec := range []*recording.Recording{whole, pieces} {
			if err := recording.Fill(rec); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
		}
		if bodies(whole) != bodies(pieces) {
			t.Errorf("%s: filled otherwise when cut", name)
		}
	})
}

// exchange is a recording of what f asks and is answered.
func exchange(path, request, contentType, response string) *recording.Recording {
	return &recording.Recording{
		Name:    "x",
		Request: recording.Request{Method: "POST", Path: path, Body: []byte(request)},
		Head: &recording.Head{Status: 200, Headers: recording.Headers{
			{Name: "content-type", Value: contentType},
		}},
		Pieces: []recording.Piece{{Data: []byte(response)}},
		End:    recording.EndEOF,
	}
}

// What becomes of a body, byte by byte.
func TestFill(t *testing.T) {
	t.Parallel()
	f := func(path, contentType, in, want string) {
		t.Helper()
		rec := exchange(path, in, contentType, in)
		if err := recording.Fill(rec); err != nil {
			t.Error(err)
			return
		}
		if got := string(rec.Pieces[0].Data); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		checkFilled(t, in, exchange(path, in, contentType, in), rec)
	}
	chat := func(in, want string) {
		t.Helper()
		f("/v1/chat/completions", "application/json", in, want)
	}
	chat(`{"model":"m","messages":[{"role":"user","content":"a \"b\" \u00e9 é","name":"bob"}],"n":2}`,
		`{"model":"m","messages":[{"role":"user","content":"xxxxxxxxxxxxxxxxx","name":"xxx"}],"n":2}`)
	chat(`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","n":1}}}]}`,
		`{"tools":[{"type":"function","function":{"name":"x","parameters":{"xxxx":"xxxxxx","x":1}}}]}`)
	chat(`{"temperature":0.7,"user":"u","seed":null,"x y":{"model":"m"},"metadata":{"id":["a",-1.5e9,true]}}`,
		`{"temperature":0.7,"user":"x","seed":null,"xxx":{"xxxxx":"x"},"metadata":{"xx":["x",-1.1e1,true]}}`)
	chat(`{"choices":[{"index":0,"finish_reason":"stop","stop_reason":"END","logprobs":{"content":[{"token":"a","logprob":-8.2,"bytes":[97,0]}]}}]}`,
		`{"choices":[{"index":0,"finish_reason":"stop","stop_reason":"xxx","logprobs":{"content":[{"token":"x","logprob":-1.1,"bytes":[11,1]}]}}]}`)
	chat(`{"choices":[{"logprobs":{"tokens":["a"],"top_logprobs":[{"model":-1.5}]}}],"usage":{"prompt_tokens":"12","x":"yy","d":{"n":3}}}`,
		`{"choices":[{"logprobs":{"tokens":["x"],"top_logprobs":[{"xxxxx":-1.1}]}}],"usage":{"prompt_tokens":"12","x":"xx","d":{"n":3}}}`)
	chat(`{"error":{"message":"no such tool f","type":"E","code":404}}`, `{"error":{"message":"xxxxxxxxxxxxxx","type":"E","code":404}}`)
	chat(`{"error":"no such \q tool"}`, `{"error":"xxxxxxxx\xxxxxx"}`)
	chat(`{"mod\u0065l":"m","id":"\u0061","content":"\ud83d\u`, `{"mod\u0065l":"m","id":"\u0061","content":"xxxxxx\u`)
	chat(`{"content":"cut o`, `{"content":"xxxxx`)
	chat(`{"arguments":{"a":[1}},"city":"Rome","model":"m"}`, `{"arguments":{"x":[1}},"xxxx":"xxxx","model":"m"}`)
	chat(`{"messages" "secret" : "x", secret: nullsecret}`, `{"xxxxxxxx" "xxxxxx" : "x", xxxxxx: nullxxxxxx}`)
	chat(`]{"city":"Rome"}`, `]{"xxxx":"xxxx"}`)
	chat("Dear Bob, 42 é!", "xxxx xxx, 11 ??!")
	f("/tokenize", "application/json", `{"model":"m","prompt":"p","nickname":"bob"}`, `{"model":"m","prompt":"x","xxxxxxxx":"xxx"}`)

	events := func(in, want string) {
		t.Helper()
		f("/v1/chat/completions", "text/event-stream", in, want)
	}
	events("\xEF\xBB\xBF: hi\r\ndata:{\"content\":\"a\"}\r\rdata: [DONE]\n\n", "\xEF\xBB\xBF: xx\r\ndata:{\"content\":\"x\"}\r\rdata: [DONE]\n\n")
	events("event: response.created\nevent: Dear Bob\nid: a1\nretry: 10\nbob\ndata\ndata: bob\n\n",
		"event: response.created\nevent: xxxx xxx\nid: x1\nretry: 11\nxxx\ndata\ndata: xxx\n\n")
	events("data: {\"content\":\ndata:\"two\ndata:  lines\",\"id\"\ndata:: \"i\"}\n\n", "data: {\"content\":\ndata:\"xxx\ndata: xxxxxx\",\"id\"\ndata:: \"i\"}\n\n")
	events("<html>Bob 1</html>", "<xxxx>xxx 1</xxxx>")
}

// Of a multipart form the fields of the API stay.
func TestFillForm(t *testing.T) {
	t.Parallel()
	f := func(contentType, in, want string) {
		t.Helper()
		form := func() *recording.Recording {
			rec := exchange("/v1/audio/transcriptions", strings.ReplaceAll(in, "\n", "\r\n"), "application/json", "{}")
			rec.Request.Headers = recording.Headers{{Name: "Content-Type", Value: contentType}}
			return rec
		}
		rec := form()
		if err := recording.Fill(rec); err != nil {
			t.Error(err)
			return
		}
		if got := strings.ReplaceAll(string(rec.Request.Body), "\r\n", "\n"); got != want {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
		checkFilled(t, in, form(), rec)
	}
	const kind = `multipart/form-data; charset=utf-8; boundary="ab c"`
	f(kind, "--ab c\nContent-Disposition: form-data; name=\"model\"\n\nwhisper-1\n--ab c  \n"+
		"content-disposition: form-data; name=\"file\"; filename=\"bob.wav\"\ncontent-type: audio/wav\n\nRIFF\xff\n--ab cd\n---ab c\n--ab c\n"+
		"content-disposition: form-data; name=prompt\n\nbob\n--ab c\ncontent-disposition: form-data; name=stream\n\ntrue\n--ab c--\nbob",
		"--ab c\nContent-Disposition: form-data; name=\"model\"\n\nwhisper-1\n--ab c  \n"+
			"content-disposition: xxxxxxxxx; xxxx=\"xxxx\"; xxxxxxxx=\"xxx.xxx\"\nxxxxxxxxxxxx: xxxxx/xxx\n\nxxxx?\nxxxx xx\nxxxxx x\n--ab c\n"+
			"content-disposition: xxxxxxxxx; xxxx=xxxxxx\n\nxxx\n--ab c\ncontent-disposition: form-data; name=stream\n\ntrue\n--ab c--\nxxx")
	f(kind, "bob\n--ab c\ncontent-disposition: form-data; filename=bob; name=\"model\"\n\nbob\n--ab c\nbob",
		"xxx\n--ab c\ncontent-disposition: xxxxxxxxx; xxxxxxxx=xxx; xxxx=\"xxxxx\"\n\nxxx\n--ab c\nxxx")
	f(kind, "--ab c", "xxxx x")
	f(kind, "--ab c\ncontent-disposition: form-data; name=model\ncontent-disposition: form-data; name=user\n\nbob\n--ab c--",
		"--ab c\ncontent-disposition: form-data; name=model\ncontent-disposition: xxxxxxxxx; xxxx=xxxx\n\nxxx\n--ab c--")
	f(kind, "--ab c\ncontent-disposition: form-data; name=model\n\nbob", "--ab c\ncontent-disposition: form-data; name=model\n\nxxx")
	f(kind, "{\"model\":\"bob\"}", "{\"xxxxx\":\"xxx\"}")
	f("multipart/form-data", "--ab c\nbob", "--xx x\nxxx")
	f("multipart/form-data; boundary=xxx", "--xxx\nname: bob\n\n--abc\n--xxx--", "--xxx\nxxxx: xxx\n\nxxxxx\n--xxx--")
}

// Token ids become running numbers of as many digits; a list that goes on with
// the one before still does.
func TestFillTokenIDs(t *testing.T) {
	t.Parallel()
	event := func(index, ids string) string {
		return `data: {"choices":[{"token_ids":[` + ids + `],"index":` + index + `}]}` + "\n\n"
	}
	fill := func(lists ...string) []string {
		var in string
		for _, l := range lists {
			index, ids, _ := strings.Cut(l, ":")
			in += event(index, ids)
		}
		rec := exchange("/v1/completions", "{}", "text/event-stream", in)
		if err := recording.Fill(rec); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, in, exchange("/v1/completions", "{}", "text/event-stream", in), rec)
		var out []string
		for _, m := range regexp.MustCompile(`\[([^\[\]{}]*)\]`).FindAllStringSubmatch(bodies(rec), -1) {
			out = append(out, m[1])
		}
		return out
	}
	if got := fill("0:7,42,1000", "0:7", "1:7", "0:7"); got[1] == "7" && got[2] == "7" || got[1] == got[3] {
		t.Errorf("the same token is the same number: %q", got)
	}
	got := fill("0:7", "1:8", "0:7,42", "1:8,9", "0:7,42,1000")
	if !strings.HasPrefix(got[2], got[0]+",") || !strings.HasPrefix(got[4], got[2]+",") || !strings.HasPrefix(got[3], got[1]+",") {
		t.Errorf("what was cumulative is not: %q", got)
	}
	got = fill("0:7", "0:8,9", "0:8,9,7")
	if strings.HasPrefix(got[1], got[0]+",") || !strings.HasPrefix(got[2], got[1]+",") {
		t.Errorf("what was not cumulative is: %q", got)
	}
	got = fill(`"1":1 , 2,-3,4.5`, "0:[1]", `0:"a"`)
	if len(got[0]) != len(`1 , 2,-3,4.5`) {
		t.Errorf("got %q", got)
	}
}

// Of the headers only those stay that can have no secret.
func TestFillDropsHeaders(t *testing.T) {
	t.Parallel()
	rec := exchange("/v1/chat/completions?key=secret", "{}", "application/json", "{}")
	rec.Request.Headers = recording.Headers{
		{Name: "Authorization", Value: "Bearer secret"}, {Name: "cookie", Value: "secret"}, {Name: "x-api-key", Value: "secret"},
		{Name: "Content-Type", Value: "application/json"}, {Name: "x-request-id", Value: "r"}, {Name: "user-agent", Value: "secret"},
	}
	rec.Head.Headers = append(rec.Head.Headers, recording.Header{Name: "set-cookie", Value: "secret"}, recording.Header{Name: "date", Value: "d"})
	if err := recording.Fill(rec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recording.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "x-request-id", Value: "r"}}, rec.Request.Headers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(recording.Headers{{Name: "content-type", Value: "application/json"}, {Name: "date", Value: "d"}}, rec.Head.Headers); diff != "" {
		t.Error(diff)
	}
	if rec.Request.Path != "/v1/chat/completions" {
		t.Errorf("path %s", rec.Request.Path)
	}
}

// FuzzFill: whatever passes, the filled form is as long, and replays to the same
// record.
func FuzzFill(f *testing.F) {
	everyRecording(f, func(_ string, read func() *recording.Recording) {
		rec := read()
		if rec.Head == nil || len(rec.Pieces) == 0 || strings.HasSuffix(rec.Name, "600") {
			return
		}
		f.Add(rec.Request.Path, rec.Request.Body, rec.Head.Headers.Get("content-type"), slices.Concat(rec.Pieces[0].Data, rec.Pieces[len(rec.Pieces)-1].Data))
	})
	f.Fuzz(func(t *testing.T, path string, request []byte, contentType string, response []byte) {
		before := exchange(path, string(request), contentType, string(response))
		after := exchange(path, string(request), contentType, string(response))
		if err := recording.Fill(after); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, path, before, after)
		if r := recording.Replay(after, recording.Cut{}); r.Class() == meter.ClassRejected {
			t.Errorf("class %s", r.Class())
		}
	})
}

// Wherever content can stand in a request or an answer, none is left.
func TestFillEveryPlace(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","user":"canary","messages":[{"role":"system","content":"canary"},{"role":"user","name":"canary","content":[
			{"type":"text","text":"canary"},{"type":"image_url","image_url":{"url":"data:canary"}},{"type":"input_audio","input_audio":{"data":"canary"}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"canary","arguments":"{\"canary\":1}"}}]},
			{"role":"assistant","function_call":{"name":"canary","arguments":{"canary":{"canary":["canary"]}}}},
			{"role":"tool","tool_call_id":"c1","content":"canary"}],
			"tools":[{"type":"function","function":{"name":"canary","description":"canary","parameters":{"type":"object","properties":{"canary":{"type":"string","enum":["canary"]}},"required":["canary"]}}}],
			"tool_choice":{"type":"function","function":{"name":"canary"}},"stop":["canary"],"metadata":{"canary":"canary"},"logit_bias":{"canary":1},
			"response_format":{"type":"json_schema","json_schema":{"name":"canary","schema":{"properties":{"canary":{}}}}},"guided_json":{"canary":1},"guided_regex":"canary",
			"documents":[{"canary":"canary"}],"chat_template":"canary","chat_template_kwargs":{"canary":"canary"},"structured_outputs":{"choice":["canary"]},
			"choices":[{"index":0,"message":{"role":"assistant","content":"canary","reasoning":"canary","reasoning_content":"canary","refusal":"canary","annotations":[{"url_citation":{"title":"canary"}}]},
			"logprobs":{"content":[{"token":"canary","bytes":[99],"top_logprobs":[{"token":"canary"}]}]},"stop_reason":"canary"}],"prompt_text":"canary","error":{"message":"canary","param":"canary"}}`,
		"/v1/completions": `{"model":"m","prompt":["canary"],"suffix":"canary","choices":[{"text":"canary","logprobs":{"tokens":["canary"],"top_logprobs":[{"canary":-1}]},"prompt_logprobs":[{"1":{"decoded_token":"canary"}}]}]}`,
		"/v1/responses": `{"model":"m","instructions":"canary","input":[{"role":"user","content":[{"type":"input_text","text":"canary"}]},{"type":"function_call_output","call_id":"c","output":"canary"}],
			"output":[{"type":"reasoning","summary":[{"text":"canary"}],"content":[{"text":"canary"}],"encrypted_content":"canary"},{"type":"function_call","name":"canary","arguments":"canary"}],
			"item":{"type":"function_call","name":"canary","arguments":"canary"},"part":{"text":"canary"},"delta":"canary","text":{"format":{"schema":{"canary":1}}},"prompt":{"variables":{"canary":"canary"}}}`,
		"/v1/messages": `{"model":"m","system":[{"type":"text","text":"canary"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"canary"}]}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"canary","input":{"canary":"canary"}},{"type":"thinking","thinking":"canary","signature":"canary"}]}],
			"tools":[{"name":"canary","input_schema":{"properties":{"canary":{}}}}],"content_block":{"type":"tool_use","name":"canary","input":{"canary":1}},
			"delta":{"type":"input_json_delta","partial_json":"{\"canary\":","stop_sequence":"canary"},"stop_sequences":["canary"]}`,
		"/v1/embeddings":   `{"model":"m","input":["canary",["canary"]],"data":[{"embedding":"canary"}]}`,
		"/v2/rerank":       `{"model":"m","query":"canary","documents":["canary",{"text":"canary"}],"results":[{"document":{"text":"canary"}}]}`,
		"/score":           `{"model":"m","text_1":"canary","text_2":["canary"],"queries":{"content":[{"text":"canary"}]}}`,
		"/tokenize":        `{"model":"m","prompt":"canary","canary":{"canary":1},"token_strs":["canary"]}`,
		"/v1/x?key=canary": "canary=canary&<b>canary</b> \"canary\" {\"content\":\"canary\"}",
	} {
		body = strings.NewReplacer("\n", "", "\t", "").Replace(body)
		for contentType, text := range map[string]string{
			"application/json":  body,
			"text/event-stream": ": canary\nevent: a canary\nid: canary\ncanary: canary\ncanary\ndata: " + body + "\n\ndata: canary " + body + "\n\n" + "data:" + body[:len(body)-40],
		} {
			rec := exchange(path, body, contentType, text)
			rec.Request.Headers = recording.Headers{{Name: "authorization", Value: "canary"}, {Name: "cookie", Value: "canary"}}
			if err := recording.Fill(rec); err != nil {
				t.Fatal(err)
			}
			written, err := recording.Append(nil, rec)
			if err != nil {
				t.Fatal(err)
			}
			if i := bytes.Index(written, []byte("canary")); i >= 0 {
				t.Errorf("%s, %s: left in …%s", path, contentType, written[max(0, i-60):i+20])
			}
			if !bytes.Contains(rec.Request.Body, []byte(`"model":"m"`)) && strings.HasPrefix(body, "{") {
				t.Errorf("%s: the model is gone: %s", path, rec.Request.Body)
			}
			checkFilled(t, path, exchange(path, body, contentType, text), rec)
		}
	}
}

// FuzzFillForm is FuzzFill for requests that are multipart forms.
func FuzzFillForm(f *testing.F) {
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\ncontent-disposition: form-data; name=model\r\n\r\nm\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nx\r\n--b--\r\n"))
	f.Add("multipart/form-data; boundary=\"a b\"", []byte("pre\r\n--a b  \r\ncontent-disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--a b"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		form := func() *recording.Recording {
			rec := exchange("/v1/audio/transcriptions", string(body), "application/json", "{}")
			rec.Request.Headers = recording.Headers{{Name: "content-type", Value: contentType}}
			return rec
		}
		after := form()
		if err := recording.Fill(after); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, contentType, form(), after)
	})
}

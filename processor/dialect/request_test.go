package dialect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// asked is all that a Scanner tells.
type asked struct {
	request                       dialect.Request
	object, known, long, finished bool
}

// scan feeds the pieces to a Scanner, and spoils each after.
func scan(pieces ...[]byte) asked {
	s := dialect.NewScanner(dialect.Chat, "")
	for _, piece := range pieces {
		p := bytes.Clone(piece)
		s.Write(p)
		for i := range p {
			p[i] = '#'
		}
	}
	finished := s.Finished()
	s.Close()
	return asked{s.Request(), s.IsObject(), s.ModelKnown(), s.ModelTooLong(), finished}
}

// cuts returns the body whole, byte by byte, and cut at every place once.
func cuts(body []byte) map[string][][]byte {
	m := map[string][][]byte{"whole": {body}}
	var single [][]byte
	for i := range body {
		single = append(single, body[i:i+1])
		if len(body) < 2048 {
			m[fmt.Sprintf("cut at %d", i)] = [][]byte{body[:i], body[i:]}
		}
	}
	m["bytes"] = single
	return m
}

// nothing is what a body gives that names nothing.
func nothing() dialect.Request {
	return dialect.Request{Dialect: dialect.Chat, N: -1, MaxTokens: -1}
}

func TestScanner(t *testing.T) {
	t.Parallel()
	named := func(model string, more ...func(*dialect.Request)) dialect.Request {
		r := nothing()
		r.Model, r.HasModel = model, true
		for _, f := range more {
			f(&r)
		}
		return r
	}
	tests := map[string]struct {
		body string
		want dialect.Request
		// Whether a model was known at some time, and whether the object ended.
		known, unfinished, notObject bool
	}{
		"everything": {known: true, body: `{"messages":[{"role":"system","content":"x"},{"content":[{"type":"text","role":"no"}],"role":"assistant"}],` +
			`"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},` +
			`"n":3,"max_tokens":7,"echo":true,"add_generation_prompt":false}`,
			want: named("m", func(r *dialect.Request) {
				r.Stream, r.IncludeUsage, r.ContinuousUsage, r.N, r.MaxTokens = true, true, true, 3, 7
				r.Echo, r.NoGenerationPrompt, r.LastRole = true, true, "assistant"
			})},
		"spaces": {known: true, body: " \n{ \"model\" :\t\"m\" , \"n\" : 2 }\r\n", want: named("m", func(r *dialect.Request) { r.N = 2 })},
		"only the top level": {known: true, body: `{"extra":{"model":"no","n":5},"tools":[{"model":"no"},[["model"]]],"model":"m","user":"\"model\":\"no\""}`,
			want: named("m")},
		"escapes":               {known: true, body: `{"mod\u0065l":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`, want: named("a\"\\/\b\f\n\r\t\u00e9\U0001F600")},
		"lone surrogates":       {known: true, body: `{"model":"\ud83d\ud83d\ude00\ude00\ud83dx\ud83d\n\ud83d"}`, want: named("\uFFFD\U0001F600\uFFFD\uFFFDx\uFFFD\n\uFFFD")},
		"bytes that are no UTF": {known: true, body: "{\"model\":\"a\xff\xfe\xe4\xbd\"}", want: named("a\uFFFD\uFFFD\uFFFD\uFFFD")},
		"escapes in capitals":   {known: true, body: `{"model":"\u00E9"}`, want: named("é")},
		"a long name":           {known: true, body: `{"` + strings.Repeat(`\u0061`, 99) + `":"x","model":"m"}`, want: named("m")},
		"raw UTF-8":             {known: true, body: `{"model":"模型"}`, want: named("模型")},
		"empty name":            {known: true, body: `{"model":""}`, want: named("")},
		"the last one wins": {known: true, body: `{"model":"a","n":2,"stream":true,"model":"b","n":null,"stream":false}`,
			want: named("b")},
		"the last one wins, none": {body: `{"model":"a","model":null}`, want: nothing()},
		"the last options win": {body: `{"stream_options":{"include_usage":true},"stream_options":{"continuous_usage_stats":true}}`,
			want: func() dialect.Request { r := nothing(); r.ContinuousUsage = true; return r }()},
		"the last messages win":   {body: `{"messages":[{"role":"assistant"}],"messages":[]}`, want: nothing()},
		"a message without role":  {body: `{"messages":[{"role":"assistant"},{"content":"x"}]}`, want: nothing()},
		"messages of other types": {body: `{"messages":[{"role":"assistant"},"x",3,[{"role":"no"}],null]}`, want: nothing()},
		"completion tokens are asked before tokens": {body: `{"max_completion_tokens":5,"max_tokens":9}`,
			want: func() dialect.Request { r := nothing(); r.MaxTokens = 5; return r }()},
		"booleans and numbers as pydantic takes them": {
			body: `{"stream":"True","echo":1,"stream_options":{"include_usage":"yes","continuous_usage_stats":1.0},"n":"2","max_tokens":4.0,"add_generation_prompt":"off"}`,
			want: func() dialect.Request {
				r := nothing()
				r.Stream, r.Echo, r.IncludeUsage, r.ContinuousUsage = true, true, true, true
				r.N, r.MaxTokens, r.NoGenerationPrompt = 2, 4, true
				return r
			}()},
		"wrong types": {body: `{"model":5,"stream":[true],"stream_options":"x","n":{"n":2},"max_tokens":-1,"echo":2,"messages":{"role":"user"},"add_generation_prompt":null}`,
			want: nothing()},
		"wrong types, more":      {body: `{"model":["m"],"stream":"maybe","stream_options":[{"include_usage":true}],"n":1.5,"max_tokens":1e30,"messages":"x"}`, want: nothing()},
		"not a number":           {body: `{"n":NaN,"max_tokens":Infinity}`, want: nothing()},
		"nothing":                {body: `{}`, want: nothing()},
		"byte order mark":        {known: true, body: "\xEF\xBB\xBF{\"model\":\"m\"}", want: named("m")},
		"after its end":          {known: true, body: `{"model":"m"}{"model":"b"}`, want: named("m")},
		"broken off after model": {known: true, unfinished: true, body: `{"model":"m","messages":[{"role":"user","content":"x`, want: named("m", func(r *dialect.Request) { r.LastRole = "user" })},
		"broken off in a second": {known: true, unfinished: true, body: `{"model":"m","model":"b`, want: named("m")},
		"a quote in a number":    {body: `{"x":0","n":1}`, want: nothing()},
		"broken off in a number": {unfinished: true, body: `{"n":12`, want: nothing()},
		"broken off in model":    {unfinished: true, body: `{"model":"m`, want: nothing()},
		"no comma":               {known: true, body: `{"model":"m" "n":2}`, want: named("m")},
		"comma at the end":       {known: true, body: `{"model":"m",}`, want: named("m")},
		"no colon":               {body: `{"model" "m"}`, want: nothing()},
		"bad escape":             {body: `{"model":"\x","n":2}`, want: nothing()},
		"bad hex":                {body: `{"model":"\u00zz","n":2}`, want: nothing()},
		"no value":               {body: `{"n":,"echo":true}`, want: nothing()},
		"key without quotes":     {body: `{n:2}`, want: nothing()},
		"wrong bracket":          {body: `{"messages":[}`, want: nothing()},
		"empty":                  {notObject: true, unfinished: true, body: "", want: nothing()},
		"array":                  {notObject: true, body: `[{"model":"m"}]`, want: nothing()},
		"string":                 {notObject: true, body: `"model"`, want: nothing()},
		"form":                   {notObject: true, body: "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--", want: nothing()},
		"half a byte order mark": {notObject: true, body: "\xEF{\"model\":\"m\"}", want: nothing()},
		"two byte order marks":   {notObject: true, body: "\xEF\xBB\xBF\xEF\xBB\xBF{}", want: nothing()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := asked{tt.want, !tt.notObject, tt.known, false, !tt.unfinished}
			for cut, pieces := range cuts([]byte(tt.body)) {
				if got := scan(pieces...); got != want {
					t.Fatalf("%s:\n got %+v\nwant %+v", cut, got, want)
				}
			}
		})
	}
}

func TestLongModelName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name, want string
		long       bool
	}{
		"the longest":            {strings.Repeat("a", dialect.MaxModel), strings.Repeat("a", dialect.MaxModel), false},
		"one more":               {strings.Repeat("a", dialect.MaxModel+1), strings.Repeat("a", dialect.MaxModel), true},
		"much more":              {strings.Repeat("a", 1<<20), strings.Repeat("a", dialect.MaxModel), true},
		"cut in a character":     {"a" + strings.Repeat("é", dialect.MaxModel/2), "a" + strings.Repeat("é", dialect.MaxModel/2-1), true},
		"cut in an escape":       {"a" + strings.Repeat(`\u00e9`, dialect.MaxModel/2), "a" + strings.Repeat("é", dialect.MaxModel/2-1), true},
		"quotes after the limit": {strings.Repeat("a", dialect.MaxModel) + `\"x\\`, strings.Repeat("a", dialect.MaxModel), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut, pieces := range cuts([]byte(`{"model":"` + tt.name + `","n":2}`)) {
				got := scan(pieces...)
				if got.request.Model != tt.want || got.long != tt.long || !got.request.HasModel || got.request.N != 2 {
					t.Fatalf("%s: %d bytes, too long %v, n %d", cut, len(got.request.Model), got.long, got.request.N)
				}
			}
		})
	}
}

func TestDeepNesting(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[{"a":`, 1<<20) + "1" + strings.Repeat("}]", 1<<20)
	got := scan([]byte(`{"messages":[{"role":"user","content":` + deep + `}],"x":` + deep + `,"model":"m"}`))
	if got.request.Model != "m" || got.request.LastRole != "user" || !got.finished {
		t.Errorf("got %+v", got)
	}
}

func TestModelIsKnownEarly(t *testing.T) {
	t.Parallel()
	s := dialect.NewScanner(dialect.Chat, "")
	s.Write([]byte(`{"model":"m`))
	if s.ModelKnown() {
		t.Error("known before its last byte")
	}
	s.Write([]byte(`"`))
	if !s.ModelKnown() || s.Request().Model != "m" || s.Finished() {
		t.Error("not known with its last byte")
	}
	s.Write([]byte("}"))
	if !s.Finished() {
		t.Error("not finished with the object's last byte")
	}
}

func TestForPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]dialect.Dialect{
		"/v1/chat/completions":               dialect.Chat,
		"/v1/chat/completions?api-version=1": dialect.Chat,
		"/v1/completions":                    dialect.Completions,
		"/openai/v1/completions":             dialect.Completions,
		"/team-a/v1/chat/completions?":       dialect.Chat,
		"/v1/chat/completions/":              dialect.Unknown,
		"/v1/chat/completions/batch":         dialect.Unknown,
		"/v1/xcompletions":                   dialect.Unknown,
		"/xv1/completions":                   dialect.Unknown,
		"/v1/responses":                      dialect.Responses,
		"/v1/responses/resp_1":               dialect.Unknown,
		"/v1/messages?beta=true":             dialect.Messages,
		"/anthropic/v1/messages":             dialect.Messages,
		"/v1/messages/count_tokens":          dialect.Unknown,
		"/v1/audio/transcriptions":           dialect.Transcription,
		"/v1/audio/translations":             dialect.Transcription,
		"/inference/v1/generate":             dialect.Generate,
		"/tiny/inference/v1/generate":        dialect.Generate,
		"/v1/generate":                       dialect.Unknown,
		"/generate":                          dialect.Unknown,
		"/v1/embeddings":                     dialect.Pooling,
		"/openai/v1/embeddings":              dialect.Pooling,
		"/pooling":                           dialect.Pooling,
		"/score":                             dialect.Pooling,
		"/game/score":                        dialect.Unknown,
		"/v1/score":                          dialect.Pooling,
		"/rerank":                            dialect.Pooling,
		"/v1/rerank":                         dialect.Pooling,
		"/v2/rerank":                         dialect.Pooling,
		"/v3/rerank":                         dialect.Unknown,
		"/classify":                          dialect.Pooling,
		"/tokenize":                          dialect.Unknown,
		"/x?/v1/completions":                 dialect.Unknown,
		"/v1/chat%2Fcompletions":             dialect.Chat,
		"/%76%31%2fcompletions":              dialect.Completions,
		"/v1/completions%3Fx":                dialect.Unknown,
		"/v1/completions%2":                  dialect.Unknown,
		"":                                   dialect.Unknown,
	} {
		if got := dialect.ForPath(path); got != want {
			t.Errorf("%q: dialect %d, want %d", path, got, want)
		}
	}
}

// What some dialects call by another name, or keep elsewhere.
func TestScannerOfDialects(t *testing.T) {
	t.Parallel()
	f := func(d dialect.Dialect, body string, n, maxTokens int64) {
		t.Helper()
		for name, pieces := range cuts([]byte(body)) {
			s := dialect.NewScanner(d, "")
			for _, p := range pieces {
				s.Write(p)
			}
			s.Close()
			if r := s.Request(); r.N != n || r.MaxTokens != maxTokens || r.Model != "m" || r.Dialect != d {
				t.Errorf("dialect %d, %s, %s: %+v; want n %d, max %d", d, name, body, r, n, maxTokens)
			}
		}
	}
	f(dialect.Responses, `{"model":"m","input":[{"role":"user","content":"max_output_tokens"}],"max_output_tokens":7,"stream":true}`, -1, 7)
	f(dialect.Chat, `{"model":"m","max_output_tokens":7}`, -1, -1)
	f(dialect.Messages, `{"model":"m","max_tokens":7,"messages":[{"role":"user","content":[{"type":"text"}]}]}`, -1, 7)
	f(dialect.Generate, `{"token_ids":[1,2],"sampling_params":{"x":[{"n":9}],"n":3,"max_tokens":7},"model":"m"}`, 3, 7)
	f(dialect.Generate, `{"sampling_params":{"n":3,"max_tokens":7},"sampling_params":{},"model":"m"}`, -1, -1)
	f(dialect.Generate, `{"sampling_params":null,"model":"m"}`, -1, -1)
	f(dialect.Chat, `{"sampling_params":{"n":3,"max_tokens":7},"model":"m"}`, -1, -1)
}

// A body that is not said to be a form is no form.
func TestScannerOfUnannouncedForm(t *testing.T) {
	t.Parallel()
	s := dialect.NewScanner(dialect.Transcription, "application/json")
	s.Write([]byte("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{\"model\":\"m\"}\r\n--b--"))
	if s.IsForm() || s.IsObject() || s.Request().HasModel || !s.Finished() {
		t.Errorf("read %+v of a form", s.Request())
	}
}

package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// edit feeds the pieces to an editor, and spoils each after.
func edit(e dialect.Edit, pieces ...[]byte) ([]byte, dialect.Asked) {
	w := dialect.NewEditor(dialect.Chat, e)
	var out []byte
	for _, piece := range pieces {
		p := bytes.Clone(piece)
		out = w.Write(out, p)
		for i := range p {
			p[i] = '#'
		}
	}
	return w.Close(out), w.Asked()
}

var (
	askedAll        = dialect.Asked{IncludeUsage: true, Continuous: true}
	askedUnsaid     = dialect.Asked{IncludeUsage: true, Continuous: true, Unsaid: true}
	askedContinuous = dialect.Asked{Continuous: true}
	askedNothing    = dialect.Asked{}
)

func TestAsk(t *testing.T) {
	t.Parallel()
	const both = `{"include_usage":true,"continuous_usage_stats":true}`
	tests := map[string]struct {
		body, want string
		asked      dialect.Asked
	}{
		"no options":         {`{"stream":true}`, `{"stream":true,"stream_options":` + both + `}`, askedAll},
		"spaces, bytes on":   {" {\"stream\" : true\n}\n\n", " {\"stream\" : true\n,\"stream_options\":" + both + "}\n\n", askedAll},
		"stream last":        {`{"messages":[{"content":"\"stream\":false}"}],"stream":true}`, `{"messages":[{"content":"\"stream\":false}"}],"stream":true,"stream_options":` + both + `}`, askedAll},
		"stream as text":     {`{"stream":"Yes"}`, `{"stream":"Yes","stream_options":` + both + `}`, askedAll},
		"stream escaped":     {`{"str\u0065am":true}`, `{"str\u0065am":true,"stream_options":` + both + `}`, askedAll},
		"null before":        {`{"stream_options": null ,"stream":true}`, `{"stream_options": ` + both + ` ,"stream":true}`, askedAll},
		"null last":          {`{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":` + both + `}`, askedAll},
		"empty":              {`{"stream":true,"stream_options":{ }}`, `{"stream":true,"stream_options":{ ` + both[1:] + `}`, askedUnsaid},
		"others inside":      {`{"stream_options":{"x":[{}],"y":"}"} ,"stream":true}`, `{"stream_options":{"x":[{}],"y":"}",` + both[1:] + ` ,"stream":true}`, askedUnsaid},
		"said no":            {`{"stream_options":{"include_usage": false},"stream":true}`, `{"stream_options":{"include_usage": true,"continuous_usage_stats":true},"stream":true}`, askedAll},
		"said null":          {`{"stream":true,"stream_options":{"include_usage":null }}`, `{"stream":true,"stream_options":{"include_usage":true ,"continuous_usage_stats":true}}`, askedAll},
		"said no, and all":   {`{"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":"off"}}`, `{"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true}}`, askedAll},
		"wants the end":      {`{"stream":true,"stream_options":{"include_usage":true}}`, `{"stream":true,"stream_options":` + both + `}`, askedContinuous},
		"wants it in words":  {`{"stream":true,"stream_options":{"include_usage":"true","continuous_usage_stats":0}}`, `{"stream":true,"stream_options":{"include_usage":"true","continuous_usage_stats":true}}`, askedContinuous},
		"escaped inside":     {`{"stream":true,"stream\u005foptions":{"include\u005fusage":false,"\u0063ontinuous_usage_stats":false}}`, `{"stream":true,"stream\u005foptions":{"include\u005fusage":true,"\u0063ontinuous_usage_stats":true}}`, askedAll},
		"twice inside":       {`{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}`, `{"stream":true,"stream_options":{"include_usage":true,"include_usage":true,"continuous_usage_stats":true}}`, askedAll},
		"the last counts":    {`{"stream_options":{"include_usage":true},"stream":true,"stream_options":{"include_usage":false}}`, `{"stream_options":{"include_usage":true},"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, askedAll},
		"the last, null":     {`{"stream_options":{"include_usage":true},"stream":true,"stream_options":null}`, `{"stream_options":{"include_usage":true},"stream":true,"stream_options":` + both + `}`, askedAll},
		"stream, the last":   {`{"stream":false,"stream":true}`, `{"stream":false,"stream":true,"stream_options":` + both + `}`, askedAll},
		"in a message":       {`{"messages":[{"stream_options":{}}],"stream":true}`, `{"messages":[{"stream_options":{}}],"stream":true,"stream_options":` + both + `}`, askedAll},
		"n is one":           {`{"n":1,"stream":true}`, `{"n":1,"stream":true,"stream_options":` + both + `}`, askedAll},
		"one prompt in list": {`{"prompt":["[a\",b"],"stream":true}`, `{"prompt":["[a\",b"],"stream":true,"stream_options":` + both + `}`, askedAll},
		"token ids":          {`{"prompt":[1,2,3],"stream":true}`, `{"prompt":[1,2,3],"stream":true,"stream_options":` + both + `}`, askedAll},
		"one list of ids":    {`{"prompt":[[1,2,3]],"stream":true}`, `{"prompt":[[1,2,3]],"stream":true,"stream_options":` + both + `}`, askedAll},
		"text and embedding": {`{"prompt":"","prompt_embeds":["a"],"stream":true}`, `{"prompt":"","prompt_embeds":["a"],"stream":true,"stream_options":` + both + `}`, askedAll},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tt.body)
			got, asked := dialect.Rewrite(dialect.Chat, body, dialect.Edit{Ask: true})
			if string(got) != tt.want || asked != tt.asked {
				t.Errorf("whole:\n got %s %+v\nwant %s %+v", got, asked, tt.want, tt.asked)
			}
			for cut, pieces := range cuts(body) {
				if got, asked := edit(dialect.Edit{Ask: true}, pieces...); string(got) != tt.want || asked != tt.asked {
					t.Fatalf("%s:\n got %s %+v\nwant %s %+v", cut, got, asked, tt.want, tt.asked)
				}
			}
		})
	}
}

// What can't be hidden, and what is none of ours, is not asked.
func TestAsk_Not(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no stream":            `{"model":"a"}`,
		"stream false":         `{"stream":false}`,
		"false, null options":  `{"stream_options":null,"stream":false}`,
		"false, with options":  `{"stream":false,"stream_options":{"include_usage":true}}`,
		"false in the end":     `{"stream":true,"stream_options":{"include_usage":true},"stream":false}`,
		"stream is no boolean": `{"stream":"maybe"}`,
		"stream in a message":  `{"messages":[{"stream":true}]}`,
		"wants all":            `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`,
		"wants all, unclear":   `{"stream":true,"stream_options":{"continuous_usage_stats":true}}`,
		"two choices":          `{"stream":true,"stream_options":{"include_usage":true},"n":2}`,
		"two choices first":    `{"n":"2","stream":true}`,
		"beam search":          `{"stream":true,"use_beam_search":true}`,
		"two prompts":          `{"prompt":["a","b"],"stream":true}`,
		"two lists of ids":     `{"prompt":[[1],[2]],"stream":true}`,
		"two embeddings":       `{"prompt_embeds":["a","b"],"stream":true}`,
		"options are text":     `{"stream":true,"stream_options":"x"}`,
		"options are a list":   `{"stream":true,"stream_options":[{}]}`,
		"options are a number": `{"stream":true,"stream_options":5}`,
		"options, a long word": `{"stream":true,"stream_options":nul` + strings.Repeat("l", 100) + `}`,
		"usage is no boolean":  `{"stream":true,"stream_options":{"include_usage":"maybe"}}`,
		"usage is an object":   `{"stream":true,"stream_options":{"include_usage":{"a":[]}}}`,
		"usage is empty":       `{"stream":true,"stream_options":{"include_usage":""}}`,
		"stats are no boolean": `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":7}}`,
		"options too large":    `{"stream":true,"stream_options":{"x":"` + strings.Repeat("x", 10<<10) + `"}}`,
		"breaks off":           `{"stream":true,"stream_options":{"include_usage":true},"n":1`,
		"breaks off inside":    `{"stream":true,"stream_options":{"include_us`,
		"stops being JSON":     `{"stream":true,"stream_options":{"include_usage":true} "n":1}`,
		"bad options":          `{"stream":true,"stream_options":{"include_usage" true}}`,
		"bad value":            `{"stream":true,"stream_options":{"include_usage":nullx}}`,
		"a list":               `[{"stream":true}]`,
		"empty":                ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, asked := dialect.Rewrite(dialect.Chat, []byte(body), dialect.Edit{Ask: true})
			if string(got) != body || asked != askedNothing {
				t.Errorf("whole:\n got %s %+v\nwant %s", got, asked, body)
			}
			for cut, pieces := range cuts([]byte(body)) {
				if got, asked := edit(dialect.Edit{Ask: true}, pieces...); string(got) != body || asked != askedNothing {
					t.Fatalf("%s:\n got %s %+v\nwant %s", cut, got, asked, body)
				}
			}
		})
	}
	for _, d := range []dialect.Dialect{dialect.Unknown, dialect.Completions + 1} {
		if _, asked := dialect.Rewrite(d, []byte(`{"stream":true}`), dialect.Edit{Ask: true}); asked.Any() {
			t.Errorf("dialect %d was asked", d)
		}
	}
}

// Model and usage are edited in one pass, wherever they stand.
func TestAskWithANewModel(t *testing.T) {
	t.Parallel()
	const body = `{"model":"a","stream_options":{"include_usage":true},"model":"b","stream":true,"n":1,"model":null}`
	const want = `{"model":"c","stream_options":{"include_usage":true,"continuous_usage_stats":true},"model":"c","stream":true,"n":1,"model":"c"}`
	e := dialect.Edit{Model: "c", SetModel: true, Ask: true}
	for cut, pieces := range cuts([]byte(body)) {
		if got, asked := edit(e, pieces...); string(got) != want || asked != askedContinuous {
			t.Fatalf("%s:\n got %s %+v\nwant %s", cut, got, asked, want)
		}
	}
}

// A body whose options stand early is held for some hundred KiB. After that, a
// client that gets usage anyway is asked for, another one not; and a body that
// is whole in memory can always be decided on.
func TestAskHoldsBackABoundedPart(t *testing.T) {
	t.Parallel()
	const limit = 256<<10 + 8<<10
	for name, tt := range map[string]struct {
		options     string
		cuts, whole dialect.Asked
	}{
		"gets usage": {`{"include_usage":true}`, askedContinuous, askedContinuous},
		"gets none":  {`{"include_usage":false}`, askedNothing, askedAll},
		"null":       {`null`, askedNothing, askedAll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := []byte(`{"model":"a","stream":true,"stream_options":` + tt.options +
				`,"prompt":"` + strings.Repeat("x", 400<<10) + `"}`)
			var first []byte
			for _, size := range []int{1, 1000, 4096, 60000, len(body)} {
				w := dialect.NewEditor(dialect.Chat, dialect.Edit{Ask: true})
				var out []byte
				for rest := body; len(rest) > 0; {
					n := min(size, len(rest))
					out = w.Write(out, rest[:n])
					rest = rest[n:]
					if lag := len(body) - len(rest) - len(out); lag > limit {
						t.Fatalf("%d bytes held back", lag)
					}
				}
				out = w.Close(out)
				if w.Asked() != tt.cuts {
					t.Fatalf("pieces of %d: asked %+v", size, w.Asked())
				}
				if first == nil {
					first = out
				}
				if !bytes.Equal(out, first) {
					t.Fatalf("pieces of %d give other bytes", size)
				}
			}
			if _, asked := dialect.Rewrite(dialect.Chat, body, dialect.Edit{Ask: true}); asked != tt.whole {
				t.Errorf("whole: asked %+v, want %+v", asked, tt.whole)
			}
		})
	}
}

// Without stream options nothing is held back at all.
func TestAskHoldsNothingBackWithoutOptions(t *testing.T) {
	t.Parallel()
	body := []byte(`{"stream":true,"prompt":"` + strings.Repeat("x", 1000) + `","n":1}`)
	w := dialect.NewEditor(dialect.Completions, dialect.Edit{Ask: true})
	var out []byte
	for i := range body[:len(body)-1] {
		out = w.Write(out, body[i:i+1])
		if len(out) != i+1 {
			t.Fatalf("%d bytes out of %d", len(out), i+1)
		}
	}
	out = w.Write(out, body[len(body)-1:])
	if !bytes.HasSuffix(w.Close(out), []byte(`"n":1,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)) {
		t.Errorf("got %s", out)
	}
}

func TestHasOptions(t *testing.T) {
	t.Parallel()
	f := func(body string, want bool) {
		t.Helper()
		s := dialect.NewScanner(dialect.Chat, "")
		s.Write([]byte(body))
		if got := s.HasOptions(); got != want {
			t.Errorf("%s: got %t, want %t", body, got, want)
		}
	}
	f(`{"stream":true}`, false)
	f(`{"stream_options":null}`, false)
	f(`{"stream_options":{}}`, true)
	f(`{"stream_options":"x"}`, true)
	f(`{"extra":{"stream_options":{}}}`, false)
}

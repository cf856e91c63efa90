package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// rewrite feeds the pieces to a Rewriter.
func rewrite(name string, pieces ...[]byte) []byte {
	w := dialect.NewRewriter(dialect.Chat, name)
	var out []byte
	for _, piece := range pieces {
		p := bytes.Clone(piece)
		out = w.Write(out, p)
		for i := range p {
			p[i] = '#'
		}
	}
	return w.Close(out)
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	long := `{"model":"` + strings.Repeat("a", dialect.MaxModel+1) + `"}`
	tests := map[string]struct{ body, name, want string }{
		"name":            {`{"n":1, "model" : "old","messages":[]}`, "new/v2", `{"n":1, "model" : "new/v2","messages":[]}`},
		"escaped":         {`{"mod\u0065l":"o\"ld"}`, "a\"b\\<é>\n", `{"mod\u0065l":"a\"b\\\u003cé\u003e\n"}`},
		"all of them":     {`{"model":"a","model":null ,"x":{"model":"a"},"model":"b"}`, "c", `{"model":"c","model":"c" ,"x":{"model":"a"},"model":"c"}`},
		"null at the end": {`{"model":null}`, "c", `{"model":"c"}`},
		"the same name":   {`{"model":"a"}`, "a", `{"model":"a"}`},
		"empty name":      {`{"model":""}`, "a", `{"model":"a"}`},
		"inside content":  {`{"messages":[{"content":"\"model\":\"a\"","model":"a"}]}`, "c", `{"messages":[{"content":"\"model\":\"a\"","model":"a"}]}`},
		"other types":     {`{"model":5,"model":["a"],"model":{"model":"a"},"model":true}`, "c", `{"model":5,"model":["a"],"model":{"model":"a"},"model":true}`},
		"breaks off":      {`{"model":"a","model":"ol`, "c", `{"model":"c","model":"ol`},
		"stops being one": {`{"model":"a" "model":"b"}`, "c", `{"model":"c" "model":"b"}`},
		"bad escape":      {`{"model":"a\x"}`, "c", `{"model":"a\x"}`},
		"too long":        {long, "c", long},
		"long literal":    {`{"model":` + strings.Repeat("1", 100) + `}`, "c", `{"model":` + strings.Repeat("1", 100) + `}`},
		"bytes after it":  {"{\"model\":\"a\"}\n\n{\"model\":\"b\"}", "c", "{\"model\":\"c\"}\n\n{\"model\":\"b\"}"},
		"no JSON":         {`model=a`, "c", `model=a`},
		"empty":           {``, "c", ``},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := dialect.RewriteModel([]byte(tt.body), tt.name); string(got) != tt.want {
				t.Errorf("buffered:\n got %s\nwant %s", got, tt.want)
			}
			for cut, pieces := range cuts([]byte(tt.body)) {
				if got := rewrite(tt.name, pieces...); string(got) != tt.want {
					t.Fatalf("%s:\n got %s\nwant %s", cut, got, tt.want)
				}
			}
		})
	}
}

func TestRewriteLeavesABodyWithoutModelAlone(t *testing.T) {
	t.Parallel()
	body := []byte(`{"prompt":"model"}`)
	if got := dialect.RewriteModel(body, "c"); &got[0] != &body[0] {
		t.Error("the body was copied")
	}
}

// What is given out never lags by more than one model value.
func TestRewriterHoldsBackLittle(t *testing.T) {
	t.Parallel()
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}],"model":"abc","n":1}`)
	w := dialect.NewRewriter(dialect.Chat, "abc")
	var out []byte
	for i := range body {
		out = w.Write(out, body[i:i+1])
		if lag := i + 1 - len(out); lag > len(`"abc`) {
			t.Fatalf("%d bytes held back at %d", lag, i)
		}
	}
	if out = w.Close(out); !bytes.Equal(out, body) {
		t.Errorf("got %s", out)
	}
	if w.Scanner().Request().N != 1 {
		t.Error("the Rewriter's Scanner did not read the body")
	}
}

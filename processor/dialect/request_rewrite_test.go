package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

func setModel(name string) dialect.Edit { return dialect.Edit{Model: name, SetModel: true} }

// rewriteWhole is what becomes of a body that is all there.
func rewriteWhole(body []byte, name string) []byte {
	out, _ := dialect.Rewrite(dialect.Chat, body, setModel(name))
	return out
}

// rewriteLater has the first pieces read by a Scanner and begins to rewrite behind
// them, with pieces that need not be copied.
func rewriteLater(first int, name string, pieces ...[]byte) []byte {
	s := dialect.NewScanner(dialect.Chat, "")
	var begun []byte
	for _, p := range pieces[:first] {
		s.Write(p)
		begun = append(begun, p...)
	}
	w, out := s.Edit(begun, setModel(name))
	out = bytes.Clone(out)
	for _, piece := range pieces[first:] {
		p := bytes.Clone(piece)
		out = append(out, w.Pass(p)...)
		for i := range p {
			p[i] = '#'
		}
	}
	return w.Close(out)
}

// rewrite is what becomes of a body that comes in these pieces.
func rewrite(name string, pieces ...[]byte) []byte {
	out, _ := edit(setModel(name), pieces...)
	return out
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
		"too long":        {long, "c", `{"model":"c"}`},
		"too long, twice": {`{"model":"a","model":"` + strings.Repeat("a", 3000) + `","n":1,"model":"\u0061` + strings.Repeat(`\"`, 2000) + `"}`, "c", `{"model":"c","model":"c","n":1,"model":"c"}`},
		"just too long":   {`{"model":"` + strings.Repeat("a", dialect.MaxModel) + `"}`, "c", `{"model":"c"}`},
		"long, no end":    {`{"model":"` + strings.Repeat("a", 2000), "c", `{"model":"c"`},
		"long elsewhere":  {`{"user":"` + strings.Repeat("a", 2000) + `","x":{"model":"` + strings.Repeat("a", 2000) + `"}}`, "c", `{"user":"` + strings.Repeat("a", 2000) + `","x":{"model":"` + strings.Repeat("a", 2000) + `"}}`},
		"to no name":      {`{"model":"a"}`, "", `{"model":""}`},
		"same, escaped":   {`{"model":"\u0061b", "model":"ab"}`, "ab", `{"model":"\u0061b", "model":"ab"}`},
		"same, no UTF":    {"{\"model\":\"a\xff\"}", "a\uFFFD", "{\"model\":\"a\xff\"}"},
		"long literal":    {`{"model":` + strings.Repeat("1", 100) + `}`, "c", `{"model":` + strings.Repeat("1", 100) + `}`},
		"bytes after it":  {"{\"model\":\"a\"}\n\n{\"model\":\"b\"}", "c", "{\"model\":\"c\"}\n\n{\"model\":\"b\"}"},
		"no JSON":         {`model=a`, "c", `model=a`},
		"empty":           {``, "c", ``},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rewriteWhole([]byte(tt.body), tt.name); string(got) != tt.want {
				t.Errorf("buffered:\n got %s\nwant %s", got, tt.want)
			}
			for cut, pieces := range cuts([]byte(tt.body)) {
				if got := rewrite(tt.name, pieces...); string(got) != tt.want {
					t.Fatalf("%s:\n got %s\nwant %s", cut, got, tt.want)
				}
				for _, first := range []int{0, len(pieces) / 2, len(pieces)} {
					if got := rewriteLater(first, tt.name, pieces...); string(got) != tt.want {
						t.Fatalf("%s, begun after %d:\n got %s\nwant %s", cut, first, got, tt.want)
					}
				}
			}
		})
	}
}

func TestRewriteLeavesABodyWithoutModelAlone(t *testing.T) {
	t.Parallel()
	body := []byte(`{"prompt":"model"}`)
	if got := rewriteWhole(body, "c"); &got[0] != &body[0] {
		t.Error("the body was copied")
	}
}

// What does not change goes out as it came, however large.
func TestPassCopiesNothing(t *testing.T) {
	t.Parallel()
	s := dialect.NewScanner(dialect.Chat, "")
	begun := []byte(`{"model":"a","messages":[{"content":"`)
	s.Write(begun)
	w, out := s.Edit(begun, setModel("a"))
	if &out[0] != &begun[0] {
		t.Error("the beginning was copied")
	}
	piece := bytes.Repeat([]byte("x"), 1000)
	for range 3 {
		if out := w.Pass(piece); len(out) != len(piece) || &out[0] != &piece[0] {
			t.Fatalf("got %q", out)
		}
	}
	if out := w.Pass([]byte(`"}],"model":"b`)); string(out) != `"}],"model":` {
		t.Errorf("got %s", out)
	}
	if out := w.Pass([]byte(`"}`)); string(out) != `"a"}` {
		t.Errorf("got %s", out)
	}
}

// A name without end is neither held nor passed on.
func TestRewriterDropsALongName(t *testing.T) {
	body := bytes.Repeat([]byte("a"), 64<<10)
	w := dialect.NewEditor(dialect.Chat, setModel("c"))
	out := w.Write(make([]byte, 0, 1<<10), []byte(`{"n":1,"model":"`))
	out = w.Write(out, body)
	if n := testing.AllocsPerRun(100, func() { out = w.Write(out, body) }); n != 0 {
		t.Errorf("%v allocations a piece", n)
	}
	if out = w.Close(w.Write(out, []byte(`","n":2}`))); string(out) != `{"n":1,"model":"c","n":2}` {
		t.Errorf("got %s", out)
	}
}

// More models than a Scanner remembers are found again.
func TestEditOfManyModels(t *testing.T) {
	t.Parallel()
	body := []byte("{" + strings.Repeat(`"model":"a",`, 100) + `"n":1}`)
	want := "{" + strings.Repeat(`"model":"c",`, 100) + `"n":1}`
	for first := range 3 {
		if got := rewriteLater(first, "c", body[:900], body[900:]); string(got) != want {
			t.Fatalf("begun after %d: got %s", first, got)
		}
	}
}

// What is given out never lags by more than one model value.
func TestRewriterHoldsBackLittle(t *testing.T) {
	t.Parallel()
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}],"model":"abc","n":1}`)
	w := dialect.NewEditor(dialect.Chat, setModel("new"))
	var out []byte
	for i := range body {
		out = w.Write(out, body[i:i+1])
		if lag := i + 1 - len(out); lag > len(`"abc`) {
			t.Fatalf("%d bytes held back at %d", lag, i)
		}
	}
	if out = w.Close(out); !bytes.Equal(out, bytes.Replace(body, []byte("abc"), []byte("new"), 1)) {
		t.Errorf("got %s", out)
	}
	if w.Scanner().Request().N != 1 {
		t.Error("the Rewriter's Scanner did not read the body")
	}
}

// Pass gives what Write gives, also where a body gets stream options.
func TestPassOfAnEditor(t *testing.T) {
	body := []byte(`{"model":"m","stream":true,"messages":[]}`)
	for _, e := range []dialect.Edit{{Ask: true}, setModel("other"), {Model: "other", SetModel: true, Ask: true}} {
		written := dialect.NewEditor(dialect.Chat, e)
		want := string(written.Close(written.Write(nil, body)))
		passed := dialect.NewEditor(dialect.Chat, e)
		var got []byte
		for i := range body {
			got = append(got, passed.Pass(body[i:i+1])...)
		}
		if got = passed.Close(got); string(got) != want || want == string(body) {
			t.Errorf("%+v: got %q, want %q", e, got, want)
		}
	}
}

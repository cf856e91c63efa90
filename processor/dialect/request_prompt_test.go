package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/inferspan/inferspan/processor/dialect"
)

// prompt feeds the pieces to a Scanner, spoils each after, and tells besides
// whether the prefix was known before the end.
func prompt(d dialect.Dialect, pieces ...[]byte) (p dialect.Prompt, known bool) {
	s := dialect.NewScanner(d, "")
	s.KeepPrefix()
	for _, piece := range pieces {
		b := bytes.Clone(piece)
		s.Write(b)
		for i := range b {
			b[i] = '#'
		}
	}
	known = s.PrefixKnown()
	s.Close()
	return s.Prompt(), known
}

// hashes are those of the blocks of text.
func hashes(text string) []uint64 {
	var all []uint64
	for end := dialect.PrefixBlock; end <= len(text) && len(all) < dialect.PrefixBlocks; end += dialect.PrefixBlock {
		all = append(all, xxhash.Sum64String(text[:end]))
	}
	return all
}

// What is hashed, in every dialect, is the values as a model sees them one after
// the other, wherever they stand in the body.
func TestPromptOfDialects(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lorem ipsum ", 100)
	messages := `[{"role":"system","content":"` + long + `\"}]"},{"role":"user","content":[{"model":"no","input":"no"}]}]`
	for name, tt := range map[string]struct {
		d      dialect.Dialect
		body   string
		prompt string
		bytes  int // where prompt is not all of it
	}{
		"chat":                    {d: dialect.Chat, body: `{"model":"m","messages":` + messages + `,"prompt":"no","n":1}`, prompt: messages},
		"chat, model last":        {d: dialect.Chat, body: `{"x":{"messages":"no"},"messages" : ` + messages + ` ,"model":"m"}`, prompt: messages},
		"escaped":                 {d: dialect.Chat, body: `{"mess\u0061ges":` + messages + `}`, prompt: messages},
		"completions":             {d: dialect.Completions, body: `{"prompt":"` + long + `","messages":[]}`, prompt: `"` + long + `"`},
		"completions, tokens":     {d: dialect.Completions, body: `{"prompt":[[1,` + strings.Repeat("12345,", 200) + `2]]}`, prompt: `[[1,` + strings.Repeat("12345,", 200) + `2]]`},
		"responses":               {d: dialect.Responses, body: `{"input":"` + long + `","instructions":"be brief","model":"m"}`, prompt: `"be brief""` + long + `"`},
		"responses, other order":  {d: dialect.Responses, body: `{"instructions":"be brief","input":"` + long + `"}`, prompt: `"be brief""` + long + `"`},
		"responses, input alone":  {d: dialect.Responses, body: `{"input":` + messages + `}`, prompt: messages},
		"messages":                {d: dialect.Messages, body: `{"messages":` + messages + `,"model":"m","system":[{"text":"` + long + `"}]}`, prompt: `[{"text":"` + long + `"}]` + messages},
		"messages, no system":     {d: dialect.Messages, body: `{"messages":` + messages + `,"system":null}`, prompt: `null` + messages},
		"generate":                {d: dialect.Generate, body: `{"token_ids":[` + strings.Repeat("1,", 300) + `1]}`, prompt: `[` + strings.Repeat("1,", 300) + `1]`},
		"embeddings":              {d: dialect.Pooling, body: `{"input":["` + long + `"]}`, prompt: `["` + long + `"]`},
		"short":                   {d: dialect.Chat, body: `{"messages":[{"content":"hi"}]}`, prompt: `[{"content":"hi"}]`},
		"one byte short":          {d: dialect.Completions, body: `{"prompt":"` + strings.Repeat("a", dialect.PrefixBlock-3) + `"}`, prompt: `"` + strings.Repeat("a", dialect.PrefixBlock-3) + `"`},
		"one block":               {d: dialect.Completions, body: `{"prompt":"` + strings.Repeat("a", dialect.PrefixBlock-2) + `"}`, prompt: `"` + strings.Repeat("a", dialect.PrefixBlock-2) + `"`},
		"more than is kept":       {d: dialect.Completions, body: `{"prompt":"` + strings.Repeat("abc", 5000) + `"}`, prompt: `"` + strings.Repeat("abc", 5000) + `"`},
		"the last one wins":       {d: dialect.Completions, body: `{"prompt":"` + long + `","prompt":"` + long[1:] + `"}`, prompt: `"` + long[1:] + `"`},
		"a number":                {d: dialect.Completions, body: `{"prompt":12 }`, prompt: `12`},
		"breaks off":              {d: dialect.Completions, body: `{"prompt":"` + long, prompt: `"` + long},
		"none":                    {d: dialect.Chat, body: `{"model":"m"}`},
		"an unknown path":         {d: dialect.Unknown, body: `{"messages":` + messages + `}`},
		"not an object":           {d: dialect.Chat, body: messages},
		"as deep as it may stand": {d: dialect.Chat, body: `{"x":[{"messages":` + messages + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := dialect.Prompt{Prefix: hashes(tt.prompt), Bytes: int64(len(tt.prompt))}
			for cut, pieces := range cuts([]byte(tt.body)) {
				if got, _ := prompt(tt.d, pieces...); !slices.Equal(got.Prefix, want.Prefix) || got.Bytes != want.Bytes {
					t.Fatalf("%s: got %+v, want %+v", cut, got, want)
				}
			}
		})
	}
}

// A conversation that goes on keeps the blocks that it had.
func TestPrefixOfAConversationThatGoesOn(t *testing.T) {
	t.Parallel()
	turn := func(n int) string {
		return fmt.Sprintf(`{"role":"user","content":"%d: %s"}`, n, strings.Repeat("x", 600))
	}
	first, _ := prompt(dialect.Chat, []byte(`{"model":"a","messages":[`+turn(1)+`,`+turn(2)+`]}`))
	second, _ := prompt(dialect.Chat, []byte(`{"messages":[`+turn(1)+`,`+turn(2)+`,`+turn(3)+`],"model":"b","stream":true}`))
	other, _ := prompt(dialect.Chat, []byte(`{"model":"a","messages":[`+turn(4)+`]}`))
	n := len(first.Prefix)
	if n < 2 || len(second.Prefix) <= n || !slices.Equal(first.Prefix, second.Prefix[:n]) {
		t.Errorf("got %x, then %x", first.Prefix, second.Prefix)
	}
	if len(other.Prefix) == 0 || other.Prefix[0] == first.Prefix[0] {
		t.Errorf("another conversation has %x, as %x", other.Prefix, first.Prefix)
	}
}

// The hashes are part of what replicas of different versions agree on.
func TestPrefixIsTheSameForEver(t *testing.T) {
	t.Parallel()
	got, _ := prompt(dialect.Completions, []byte(`{"prompt":"`+strings.Repeat("a", 2*dialect.PrefixBlock)+`"}`))
	if want := []uint64{0x8cb9b2ad9ac5fb14, 0x72ee156aad4a1d72}; !slices.Equal(got.Prefix, want) {
		t.Errorf("got %#x, want %#x", got.Prefix, want)
	}
}

// Without being asked to, a Scanner keeps no prompt.
func TestPrefixIsNotKeptUnasked(t *testing.T) {
	t.Parallel()
	s := dialect.NewScanner(dialect.Completions, "")
	s.Write([]byte(`{"prompt":"` + strings.Repeat("a", 5000) + `"}`))
	if got := s.Prompt(); got.Prefix != nil || got.Bytes != 5002 {
		t.Errorf("got %+v", got)
	}
}

func TestPrefixKnown(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", dialect.PrefixBlock*dialect.PrefixBlocks)
	for body, want := range map[string]bool{
		`{"model":"m"`:                            false,
		`{"messages":[{"content":"a"}`:            false,
		`{"messages":[{"content":"a"}]`:           true,
		`{"messages":[{"content":"` + full:        true,
		`{"messages":[{"content":"` + full[30:]:   false,
		`{"model":"m","x":"` + full + full:        false,
		`{"model":"m"}`:                           true,
		`{"messages":[{"content":"a"}], no JSON}`: true,
	} {
		if _, known := prompt(dialect.Chat, []byte(body)); known != want {
			t.Errorf("chat, %.40s: known is %t", body, known)
		}
	}
	for body, want := range map[string]bool{
		`{"messages":[{"content":"a"}],"model":"m"`:     false,
		`{"messages":[{"content":"` + full:              false,
		`{"system":"a","messages":[]`:                   true,
		`{"system":"a","messages":[{"content":"a"`:      false,
		`{"system":"a","messages":[{"content":"` + full: true,
		`{"messages":[],"system":"a"`:                   true,
		`{"system":"` + full:                            true,
	} {
		if _, known := prompt(dialect.Messages, []byte(body)); known != want {
			t.Errorf("messages, %.40s: known is %t", body, known)
		}
	}
	if _, known := prompt(dialect.Unknown, []byte(`{"model":"m",`)); !known {
		t.Error("an unknown path has a prompt")
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"prompt_cache_key":"a\u0062"}`:                                   "ab",
		`{"prompt_cache_key":"a","prompt_cache_key":"b"}`:                  "b",
		`{"prompt_cache_key":"a","prompt_cache_key":null}`:                 "",
		`{"prompt_cache_key":7,"x":{"prompt_cache_key":"no"}}`:             "",
		`{"prompt_cache_key":"` + strings.Repeat("é", 200) + `","n":1}`:    strings.Repeat("é", 128),
		`{"messages":[{"prompt_cache_key":"no"}],"prompt_cache_key":"ok"}`: "ok",
	} {
		for cut, pieces := range cuts([]byte(body)) {
			if got, _ := prompt(dialect.Chat, pieces...); got.Session != want {
				t.Fatalf("%s, %s: got %q, want %q", body, cut, got.Session, want)
			}
		}
	}
}

// FuzzPrompt: for any body the cutting does not matter, and for a valid one what
// is hashed are the values that encoding/json finds.
func FuzzPrompt(f *testing.F) {
	text := strings.Repeat(`a \"line\" of text`, 80)
	for _, body := range []string{
		`{"system":"` + text + `","messages":[{"role":"user","content":"` + text + `"}]}`,
		`{"messages":[` + strings.Repeat("[],{},1.5,", 90) + `null],"system":"s","messages":[1]}`,
		`{"model":"m","messages":12,"system":"` + text + text + text + `"}`,
		`{"messages":["` + text + `"` + `x` + text, `[{"messages":1}]`,
	} {
		f.Add([]byte(body), []byte{1, 0, 7, 200})
	}
	f.Fuzz(func(t *testing.T, body, places []byte) {
		whole, known := prompt(dialect.Messages, body)
		cut, cutKnown := prompt(dialect.Messages, pieces(body, places)...)
		if !slices.Equal(whole.Prefix, cut.Prefix) || whole.Bytes != cut.Bytes || whole.Session != cut.Session || known != cutKnown {
			t.Fatalf("cut by %v: got %+v %t, want %+v %t", places, cut, cutKnown, whole, known)
		}
		var top struct{ System, Messages json.RawMessage }
		if !json.Valid(body) || !utf8.Valid(body) || !rawMembers(body, &top.System, &top.Messages) {
			return
		}
		text := string(top.System) + string(top.Messages)
		if want := hashes(text); !slices.Equal(whole.Prefix, want) || whole.Bytes != int64(len(text)) {
			t.Fatalf("got %+v, want %x of %q", whole, want, text)
		}
	})
}

// rawMembers finds the last "system" and "messages" of an object.
func rawMembers(body []byte, system, messages *json.RawMessage) bool {
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		return false
	}
	*system, *messages = top["system"], top["messages"]
	return true
}

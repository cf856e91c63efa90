package dialect_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inferspan/inferspan/processor/dialect"
)

// longest is the longest value, in bytes, of any member but the model.
const longest = 64

// oracle reads a valid body with encoding/json, whole.
func oracle(t *testing.T, body []byte) dialect.Request {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	top := map[string]any{}
	if err := d.Decode(&top); err != nil {
		t.Fatalf("decode a valid object: %v", err)
	}
	r := nothing()
	r.Model, r.HasModel = top["model"].(string)
	r.Stream = boolean(top["stream"], false)
	r.Echo = boolean(top["echo"], false)
	r.NoGenerationPrompt = !boolean(top["add_generation_prompt"], true)
	r.N = number(top["n"])
	r.MaxTokens = number(top["max_tokens"])
	if n := number(top["max_completion_tokens"]); n >= 0 {
		r.MaxTokens = n
	}
	if o, ok := top["stream_options"].(map[string]any); ok {
		r.IncludeUsage = boolean(o["include_usage"], false)
		r.ContinuousUsage = boolean(o["continuous_usage_stats"], false)
	}
	if list, ok := top["messages"].([]any); ok && len(list) > 0 {
		if m, ok := list[len(list)-1].(map[string]any); ok {
			r.LastRole = scalar(m["role"])
		}
	}
	return r
}

// scalar returns the text of a string, or "" for anything else.
func scalar(v any) string {
	if s, ok := v.(string); ok && len(s) <= longest {
		return s
	}
	return ""
}

func boolean(v any, absent bool) bool {
	switch v := v.(type) {
	case bool:
		return v
	case json.Number:
		if f, err := v.Float64(); err == nil && len(v) <= longest && (f == 0 || f == 1) {
			return f == 1
		}
	case string:
		switch strings.ToLower(scalar(v)) {
		case "1", "true", "t", "yes", "y", "on":
			return true
		case "0", "false", "f", "no", "n", "off":
			return false
		}
	}
	return absent
}

func number(v any) int64 {
	n, ok := v.(json.Number)
	if s, isText := v.(string); isText {
		n, ok = json.Number(strings.TrimSpace(scalar(s))), true
	}
	f, err := n.Float64()
	if !ok || err != nil || len(n) > longest || f < 0 || f >= 1<<63 || f != float64(int64(f)) {
		return -1
	}
	return int64(f)
}

// rewriteOracle replaces the model by the offsets of encoding/json's decoder.
func rewriteOracle(t *testing.T, body []byte, name string) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		t.Fatalf("read the brace: %v", err)
	}
	quoted, _ := json.Marshal(name)
	var out []byte
	at := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("read a key: %v", err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatalf("read a value: %v", err)
		}
		var s *string
		if key != "model" || json.Unmarshal(raw, &s) != nil || s != nil && *s == name {
			continue
		}
		end := int(d.InputOffset())
		out = append(out, body[at:end-len(raw)]...)
		out = append(out, quoted...)
		at = end
	}
	return append(out, body[at:]...)
}

func pieces(body, places []byte) [][]byte {
	var p [][]byte
	for _, n := range places {
		k := min(int(n), len(body))
		p, body = append(p, body[:k]), body[k:]
	}
	return append(p, body)
}

// FuzzRequest: for any body, valid or not, the cutting changes neither what is
// read nor what is rewritten; for a valid one, both are what encoding/json says.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"a\n\"b\\"},{"role":"assistant"}],"stream":true,"n":2}`,
		`{"mod\u0065l":"\ud83d\ude00\ud83d","stream_options":{"include_usage":"true","continuous_usage_stats":1}}`,
		`{"model":null,"max_tokens":1e2,"max_completion_tokens":"5","echo":"on","add_generation_prompt":false}`,
		`{"x":[[{"model":"no"}],{}],"messages":[[],{},"a",1],"model":"a","model":"b"}`,
		"\xEF\xBB\xBF {\"model\" : \"\xff\" } x", `{"model":"a","n":1`, `[1]`, `{"messages":[{"role":5}]}`,
	} {
		f.Add([]byte(body), []byte{1, 0, 7, 200})
		f.Add([]byte(body), []byte{9, 1, 1, 1, 1, 1, 1})
	}
	f.Fuzz(func(t *testing.T, body, places []byte) {
		const name = "new"
		whole, cut := scan(body), scan(pieces(body, places)...)
		if whole != cut {
			t.Fatalf("cut by %v:\n got %+v\nwant %+v", places, cut, whole)
		}
		buffered := rewriteWhole(body, name)
		if got := rewrite(name, pieces(body, places)...); !bytes.Equal(got, buffered) {
			t.Fatalf("rewritten, cut by %v:\n got %s\nwant %s", places, got, buffered)
		}
		for first := range min(len(places), 4) + 1 {
			if got := rewriteLater(first, name, pieces(body, places)...); !bytes.Equal(got, buffered) {
				t.Fatalf("rewritten, cut by %v, after %d:\n got %s\nwant %s", places, first, got, buffered)
			}
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			return
		}
		if object := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")); !object {
			if whole.object || !bytes.Equal(buffered, body) {
				t.Fatalf("not an object: %+v, rewritten %s", whole, buffered)
			}
			return
		}
		want := oracle(t, body)
		if whole.long {
			if !strings.HasPrefix(want.Model, whole.request.Model) || len(want.Model) <= dialect.MaxModel {
				t.Fatalf("model %q cut to %q", want.Model, whole.request.Model)
			}
			want.Model = whole.request.Model
		}
		if whole.request != want {
			t.Fatalf("encoding/json reads otherwise:\n got %+v\nwant %+v", whole.request, want)
		}
		if want := rewriteOracle(t, body, name); !bytes.Equal(buffered, want) {
			t.Fatalf("encoding/json rewrites otherwise:\n got %s\nwant %s", buffered, want)
		}
	})
}

package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// FuzzAsk holds the asking against encoding/json: for any body and any cut, what
// is sent says what was asked, all else is as it was, and a body that did not
// ask keeps its bytes.
func FuzzAsk(f *testing.F) {
	for _, seed := range []string{
		`{"stream":true}`,
		`{"stream":true,"stream_options":{"include_usage":true}}`,
		`{"stream_options":null,"model":"a","stream":true,"n":1}`,
		`{"stream_options":{},"stream_options":{"include_usage":false,"x":[1,"}"]},"stream":"yes"}`,
		`{"str\u0065am":1,"stream\u005foptions":{"\u0069nclude_usage":null},"prompt":["a"]}`,
		`{"stream":true,"prompt":[[1],[2]],"use_beam_search":0}`,
		"\xEF\xBB\xBF {\"stream\":true , \"stream_options\" : { } }\n",
	} {
		f.Add([]byte(seed), uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8, rename bool) {
		e := dialect.Edit{Ask: true}
		if rename {
			e.Model, e.SetModel = "new", true
		}
		got, asked := dialect.Rewrite(dialect.Chat, body, e)
		var pieces [][]byte
		for rest := body; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if len(body) < 200<<10 {
			if cut, cutAsked := edit(e, pieces...); !bytes.Equal(cut, got) || cutAsked != asked {
				t.Fatalf("pieces of %d: %q %+v, whole %q %+v", int(size)+1, cut, cutAsked, got, asked)
			}
		}
		if !asked.Any() {
			if !rename && !bytes.Equal(got, body) {
				t.Fatalf("nothing asked, yet %q became %q", body, got)
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))) {
			return // asked in a body that no server takes
		}
		before, after := members(t, body), members(t, got)
		options, ok := after["stream_options"].(map[string]any)
		if !ok || !boolean(options["include_usage"], false) || !boolean(options["continuous_usage_stats"], false) {
			t.Fatalf("%q became %q, which does not ask", body, got)
		}
		if asked.IncludeUsage == usageWished(before) {
			t.Fatalf("of %q asked %+v", body, asked)
		}
		for _, m := range []map[string]any{before, after} {
			delete(m, "stream_options")
			if rename {
				delete(m, "model")
			}
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", body, got)
		}
	})
}

func usageWished(top map[string]any) bool {
	o, _ := top["stream_options"].(map[string]any)
	return boolean(o["include_usage"], false)
}

func members(t *testing.T, body []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))))
	d.UseNumber()
	var top map[string]any
	if err := d.Decode(&top); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	return top
}

package dialect

import "testing"

// sites reads where the parts of an event stand, with what was in it before.
func sites(t *testing.T, data string) (at Sites, whole bool) {
	t.Helper()
	at = Sites{Choices: 9, Finished: true, Usage: Member{Present: true}}
	whole = at.Read([]byte(data))
	return at, whole
}

func TestSites_Members(t *testing.T) {
	t.Parallel()
	f := func(data, value, member string, fingerprint bool) {
		t.Helper()
		at, whole := sites(t, data)
		m := at.Usage
		if fingerprint {
			m = at.Fingerprint
		}
		if !whole || !m.Present || data[m.Value:m.End] != value || data[m.From:m.To] != member {
			t.Errorf("%s: whole %t, %+v: value %q, member %q", data, whole, m, data[m.Value:m.End], data[m.From:m.To])
		}
		if data[at.Close] != '}' {
			t.Errorf("%s: closes at %d", data, at.Close)
		}
	}
	f(`{"id":"a","usage":{"b":1}}`, `{"b":1}`, `,"usage":{"b":1}`, false)
	f(`{"id":"a", "usage" : null }`, `null`, `, "usage" : null`, false)
	f(`{"usage":{},"id":"a"}`, `{}`, `"usage":{},`, false)
	f(`{"usage":{}}`, `{}`, `"usage":{}`, false)
	f(`{"id":"a","system_fingerprint":"f","usage":7}`, `"f"`, `,"system_fingerprint":"f"`, true)
	f(`{ "system_fingerprint": "f", "usage": 7 }`, `"f"`, `"system_fingerprint": "f", `, true)
}

func TestSites_Usage(t *testing.T) {
	t.Parallel()
	f := func(data string, object, nullDetails bool) {
		t.Helper()
		at, whole := sites(t, data)
		if !whole || at.UsageObject != object || at.NullDetails != nullDetails || at.Choices != -1 {
			t.Errorf("%s: whole %t, %+v", data, whole, at)
		}
	}
	f(`{"usage":{"prompt_tokens":1,"prompt_tokens_details":null}}`, true, true)
	f(`{"usage":{"prompt_tokens_details":{}}}`, true, false)
	f(`{"usage":null}`, false, false)
	f(`{}`, false, false)
}

func TestSites_Choices(t *testing.T) {
	t.Parallel()
	f := func(choices string, n int, finished, bare bool) {
		t.Helper()
		at, whole := sites(t, `{"choices":`+choices+`}`)
		if !whole || at.Choices != n || at.Finished != finished || at.Bare != bare {
			t.Errorf("%s: whole %t, %+v", choices, whole, at)
		}
	}
	f(`null`, -1, false, true)
	f(`[]`, 0, false, true)
	f(`[{"index":0,"delta":{},"finish_reason":null}]`, 1, false, true)
	f(`[{"delta":{"content":"","role":null}}]`, 1, false, true)
	f(`[{"delta":{"content":"a"}}]`, 1, false, false)
	f(`[{"delta":{"tool_calls":[]}}]`, 1, false, false)
	f(`[{"delta":null}]`, 1, false, true)
	f(`[{"text":""}]`, 1, false, true)
	f(`[{"text":"a"},{"text":""}]`, 2, false, false)
	f(`[{"text":"","finish_reason":"stop"},{"finish_reason":null}]`, 2, true, false)
	f(`[7]`, 1, false, false)
}

func TestSites_NotWhole(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		``, `[]`, `[DONE]`, `{"usage":{}`, `{"usage":{},"usage":null}`, `{"usage" 1}`, `{1:2}`, `{"usage":1}x`,
		`{"system_fingerprint":"a","system_fingerprint":"a"}`,
	} {
		if _, whole := sites(t, data); whole {
			t.Errorf("%s: taken for whole", data)
		}
	}
}

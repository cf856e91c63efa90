package dialect_test

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

// A response's model has another name where its dialect has it, and nowhere else.
func TestRestorer(t *testing.T) {
	f := func(d dialect.Dialect, text, want string) {
		t.Helper()
		w := dialect.NewRestorer(d, "asked")
		// The second text is another one, not the rest of the first.
		for range 2 {
			var got []byte
			for i := range len(text) {
				got = w.Write(got, []byte{text[i]})
			}
			got = w.Close(got)
			if string(got) != want || w.Held() {
				t.Errorf("by bytes: got %q, held %t, want %q", got, w.Held(), want)
			}
			w.Restart()
			if got := string(w.Close(append([]byte(nil), w.Pass([]byte(text))...))); got != want {
				t.Errorf("whole: got %q, want %q", got, want)
			}
			w.Restart()
		}
	}
	f(dialect.Chat, `{"id":"1","model":"real","choices":[{"delta":{"content":"\"model\":\"real\"","model":"real"}}]}`,
		`{"id":"1","model":"asked","choices":[{"delta":{"content":"\"model\":\"real\"","model":"real"}}]}`)
	f(dialect.Chat, `{"response":{"model":"real"},"message":{"model":"real"}}`, `{"response":{"model":"real"},"message":{"model":"real"}}`)
	f(dialect.Responses, `{"type":"response.created","response":{"id":"r","model":"real","model2":"real"}}`,
		`{"type":"response.created","response":{"id":"r","model":"asked","model2":"real"}}`)
	f(dialect.Responses, `{"message":{"model":"real"}}`, `{"message":{"model":"real"}}`)
	f(dialect.Messages, `{"type":"message_start","message":{"content":[],"model":"real"}}`,
		`{"type":"message_start","message":{"content":[],"model":"asked"}}`)
	f(dialect.Messages, `{"response":{"model":"real"}}`, `{"response":{"model":"real"}}`)
	f(dialect.Chat, `{"model":null,"id":"1"}`, `{"model":null,"id":"1"}`)
	f(dialect.Chat, `{"model":7}`, `{"model":7}`)
	f(dialect.Chat, `["model","real"]`, `["model","real"]`)
}

// What may be of a name is held back until it is known.
func TestRestorerHolds(t *testing.T) {
	w := dialect.NewRestorer(dialect.Chat, "asked")
	got := w.Write(nil, []byte(`{"model":"re`))
	if !w.Held() || string(got) != `{"model":` {
		t.Errorf("within the name: %q, held %t", got, w.Held())
	}
	if got = w.Write(got, []byte(`al","id"`)); w.Held() || string(got) != `{"model":"asked","id"` {
		t.Errorf("behind it: %q, held %t", got, w.Held())
	}
}

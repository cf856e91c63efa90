package hide_test

import (
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/hide"
)

const (
	chunk  = `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"completion_tokens":1}}`
	bare   = `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`
	finish = `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`
	last   = `{"choices":[],"usage":{"completion_tokens":2}}`
	marked = `{"choices":[],"usage":{"completion_tokens":2},"system_fingerprint":"vllm-1"}`
	signed = `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"system_fingerprint":"vllm-1"}`
)

func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func TestHide(t *testing.T) {
	t.Parallel()
	const head = `{"choices":[{"delta":{"content":"a"}}]`
	tests := map[string]struct{ stream, want string }{
		"empty":                     {"", ""},
		"chunks and the last":       {events(chunk, chunk, last, "[DONE]"), events(bare, bare, "[DONE]")},
		"first member":              {events(`{"usage":{}, "choices":[{"delta":{"content":"a"}}]}`), events(`{"choices":[{"delta":{"content":"a"}}]}`)},
		"spaced":                    {events(`{ "choices": [{"delta": {"content": "a"}}] , "usage" : {"a": "}"} , "id": 1 }`), events(`{ "choices": [{"delta": {"content": "a"}}]  , "id": 1 }`)},
		"escaped name":              {events(head + `,"us\u0061ge":{}}`), events(head + `}`)},
		"usage in text":             {events(`{"choices":[{"delta":{"content":"\"usage\":{}"}}]}`), events(`{"choices":[{"delta":{"content":"\"usage\":{}"}}]}`)},
		"usage in a choice":         {events(`{"choices":[{"usage":{},"delta":{"content":"a"}}]}`), events(`{"choices":[{"usage":{},"delta":{"content":"a"}}]}`)},
		"null":                      {events(head+`,"usage":null}`, last), events(head + `,"usage":null}`)},
		"usage twice":               {events(head + `,"usage":{},"usage":{}}`), events(head + `,"usage":{},"usage":{}}`)},
		"usage is a number":         {events(head + `,"usage":1}`), events(head + `,"usage":1}`)},
		"error":                     {events(`{"error":{"message":"x"},"usage":{}}`, "[DONE]"), events(`{"error":{"message":"x"},"usage":{}}`, "[DONE]")},
		"no JSON":                   {events(`{"choices":[],"usage":{}`, "[]", "x"), events(`{"choices":[],"usage":{}`, "[]", "x")},
		"no list":                   {events(`{"choices":{},"usage":{}}`), events(`{"choices":{},"usage":{}}`)},
		"choices that are none":     {events(`{"choices":[1,{}],"usage":{}}`), events(`{"choices":[1,{}]}`)},
		"no choices, no usage":      {events(`{"choices":[]}`, `{"choices":[],"usage":null}`), events(`{"choices":[]}`, `{"choices":[],"usage":null}`)},
		"usage at the finish only":  {events(bare, strings.TrimSuffix(finish, "}")+`,"usage":{}}`), events(bare, strings.TrimSuffix(finish, "}")+`,"usage":{}}`)},
		"one chunk":                 {events(strings.TrimSuffix(finish, "}")+`,"usage":{}}`, last), events(finish)},
		"finish reasons say little": {events(`{"choices":[{"text":"","finish_reason":""}]}`, last), events(`{"choices":[{"text":"","finish_reason":""}]}`)},

		"fingerprint":                {events(chunk, finish, marked, "[DONE]"), events(bare, signed, "[DONE]")},
		"fingerprint, no mark":       {events(finish, marked), events(signed)},
		"fingerprint of its own":     {events(signed, strings.ReplaceAll(marked, "vllm-1", "x"), "[DONE]"), events(signed, "[DONE]")},
		"fingerprint without finish": {events(bare, marked, "[DONE]"), events(bare, "[DONE]")},
		"finish, then another":       {events(finish, bare, marked), events(finish, bare)},
		"finish, then done":          {events(finish, "[DONE]"), events(finish, "[DONE]")},
		"finish, then nothing":       {events(finish), events(finish)},
		"finish, keep-alive, last":   {events(finish) + ": alive\n\n" + events(marked, "[DONE]"), events(signed) + ": alive\n\n" + events("[DONE]")},

		"carriage returns":      {strings.ReplaceAll(events(chunk, finish, marked, "[DONE]"), "\n", "\r\n"), strings.ReplaceAll(events(bare, signed, "[DONE]"), "\n", "\r\n")},
		"carriage returns only": {strings.ReplaceAll(events(chunk, finish, marked, "[DONE]"), "\n", "\r"), strings.ReplaceAll(events(bare, signed, "[DONE]"), "\n", "\r")},
		"mixed line ends":       {"data: " + chunk + "\r\n\ndata: " + last + "\n\r\ndata: x\r\r", "data: " + bare + "\r\n\ndata: x\r\r"},
		"no space":              {"data:" + chunk + "\n\ndata:" + last + "\n\n", "data:" + bare + "\n\n"},
		"other lines":           {"event: x\nid: 1\ndata: " + last + "\nretry: 5\n\nid: 2\ndata: " + chunk + "\ndat: 1\n\n", "id: 2\ndata: " + bare + "\ndat: 1\n\n"},
		"comments inside":       {": a\ndata: " + last + "\n: b\r\n\ndata: " + chunk + "\n: c\n\n", ": a\n: b\r\ndata: " + bare + "\n: c\n\n"},
		"byte order mark":       {"\xEF\xBB\xBF" + events(chunk, last), "\xEF\xBB\xBF" + events(bare)},
		"several lines":         {"data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]\ndata: ,\"usage\":\ndata: {}}\n\n", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]\ndata: }\n\n"},
		"several lines, last":   {"data: {\"choices\":[],\r\ndata\r\ndata: \"usage\":{}}\r\n\r\ndata: x\r\n\r\n", "data: x\r\n\r\n"},
		"several lines, finish": {"data: {\"choices\":[{\ndata: \"finish_reason\":\"stop\"}]}\n\n" + events(marked), "data: {\"choices\":[{\ndata: \"finish_reason\":\"stop\"}]}\n\n"},
		"no data":               {"event: x\n\n\n\n" + events(last), "event: x\n\n\n\n"},
		"whole tail":            {events(chunk) + "data: " + last, events(bare)},
		"whole tail, one end":   {events(chunk) + "data: " + chunk + "\n", events(bare) + "data: " + bare + "\n"},
		"comment in the tail":   {"data: " + last + "\n: a", ": a"},
		"broken tail":           {events(chunk) + "data: " + chunk[:len(chunk)-1], events(bare) + "data: " + chunk[:len(chunk)-1]},
		"only a comment":        {": a", ": a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyCut(t, dialect.Chat, both, tt.stream, tt.want)
		})
	}
}

// vLLM's completions before 0.21 have a null where no usage was asked.
func TestNullComesBack(t *testing.T) {
	t.Parallel()
	stream := events(`{"choices":[{"text":"a"}],"usage":{"completion_tokens":1,"prompt_tokens_details":null}}`)
	everyCut(t, dialect.Completions, both, stream, events(`{"choices":[{"text":"a"}],"usage":null}`))
	everyCut(t, dialect.Chat, both, stream, events(`{"choices":[{"text":"a"}]}`))
}

// An event beyond the maximum passes, in whatever pieces, and the next one is
// edited again.
func TestLargeEventsPass(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 300)
	padded := strings.Replace(chunk, `"a"`, `"`+pad+`"`, 1)
	for name, tt := range map[string]struct {
		stream, want string
		large        int64
	}{
		"event":            {events(padded, chunk), events(padded, bare), 1},
		"CRLF":             {strings.ReplaceAll(events(padded, chunk), "\n", "\r\n"), strings.ReplaceAll(events(padded, bare), "\n", "\r\n"), 1},
		"many lines":       {strings.Repeat("data: x\n", 50) + "\n" + events(chunk), strings.Repeat("data: x\n", 50) + "\n" + events(bare), 1},
		"comment":          {": " + pad + "\n\n" + events(chunk), ": " + pad + "\n\n" + events(bare), 1},
		"behind a finish":  {events(finish, padded, marked), events(finish, padded), 1},
		"never ends":       {events(chunk) + "data: " + pad, events(bare) + "data: " + pad, 1},
		"comments, finish": {events(finish) + strings.Repeat(": alive\n", 50) + events(marked), events(finish) + strings.Repeat(": alive\n", 50), 0},
		"just below":       {events(chunk + strings.Repeat(" ", 200-8-len(chunk))), events(bare + strings.Repeat(" ", 200-8-len(chunk))), 0},
		"just above":       {events(chunk + strings.Repeat(" ", 201-8-len(chunk))), events(chunk + strings.Repeat(" ", 201-8-len(chunk))), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(tt.stream); size++ {
				h := hide.New(dialect.Chat, both, 200)
				var out []byte
				for rest := tt.stream; rest != ""; {
					n := min(size, len(rest))
					out = h.Write(out, []byte(rest[:n]))
					rest = rest[n:]
				}
				if out = h.Close(out); string(out) != tt.want || h.Overflows() != tt.large {
					t.Fatalf("pieces of %d: %d overflows\n got %q\nwant %q", size, h.Overflows(), out, tt.want)
				}
			}
		})
	}
}

// A whole event goes out with its last byte, but for the finish chunk, and a
// comment with its line.
func TestHoldsBackOneEvent(t *testing.T) {
	t.Parallel()
	h := hide.New(dialect.Chat, both, 0)
	var out []byte
	for _, step := range []struct{ in, out string }{
		{events(chunk), events(bare)},
		{": alive\n", ": alive\n"},
		{"\n", "\n"},
		{"data: " + chunk + "\n", ""},
		{"\n", events(bare)},
		{events(finish), ""},
		{"data: [DO", ""},
		{"NE]\n\n", events(finish, "[DONE]")},
		{events(finish), ""},
		{events(marked), events(signed)},
	} {
		if out = h.Write(out[:0], []byte(step.in)); string(out) != step.out {
			t.Fatalf("after %q:\n got %q\nwant %q", step.in, out, step.out)
		}
	}
}

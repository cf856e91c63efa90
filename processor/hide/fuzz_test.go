package hide_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/hide"
)

const fuzzMax = 512

// FuzzHide_Cut: the cutting of any bytes does not matter, no more than two
// events are held back, and nothing asked is nothing hidden.
func FuzzHide_Cut(f *testing.F) {
	f.Add([]byte(events(chunk, finish, marked, "[DONE]")), uint64(1))
	f.Add([]byte(strings.ReplaceAll(events(chunk, finish, last), "\n", "\r\n")), uint64(2))
	f.Add([]byte("\xEF\xBB\xBF: x\rdata: "+last+"\n: y\r\n\ndata\ndata:"+strings.Repeat("z", 600)+"\r\r"+events(chunk)), uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		whole := hide.New(dialect.Completions, both, fuzzMax)
		want := whole.Close(whole.Write(nil, stream))
		cut := hide.New(dialect.Completions, both, fuzzMax)
		nothing := hide.New(dialect.Chat, dialect.Asked{}, fuzzMax)
		random := rand.New(rand.NewPCG(seed, 0))
		var got, same []byte
		for rest := stream; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 40))
			got, same = cut.Write(got, rest[:n]), nothing.Write(same, rest[:n])
			rest = rest[n:]
			if lag := len(stream) - len(rest) - len(same); lag > fuzzMax+40 {
				t.Fatalf("%d bytes held back", lag)
			}
		}
		if got = cut.Close(got); !bytes.Equal(got, want) || cut.Overflows() != whole.Overflows() {
			t.Fatalf("of %q\n cut %q\nwhole %q", stream, got, want)
		}
		if same = nothing.Close(same); !bytes.Equal(same, stream) {
			t.Fatalf("nothing asked, yet %q became %q", stream, same)
		}
	})
}

// writer makes up a stream as vLLM would send it, with and without usage.
type writer struct {
	random        *rand.Rand
	d             dialect.Dialect
	old           bool // of before the fingerprint
	eol           string
	with, without strings.Builder
	tokens        int
}

// send sends an event whose data is head, what asking brings, and tail.
func (w *writer) send(head, with, without, tail string) {
	w.with.WriteString("data: " + head + with + tail + w.eol + w.eol)
	w.without.WriteString("data: " + head + without + tail + w.eol + w.eol)
}

// alike sends the same to both.
func (w *writer) alike(s string) {
	w.with.WriteString(s)
	w.without.WriteString(s)
}

// chunk sends one chunk with text; reason is null or a finish reason as JSON.
func (w *writer) chunk(text, reason string) {
	quoted, _ := json.Marshal(text)
	w.tokens++
	finish := ""
	if reason != "null" && !w.old {
		finish = `,"system_fingerprint":"vllm-9"`
	}
	if w.d == dialect.Completions {
		usage, none := `{"prompt_tokens":7,"completion_tokens":`+strconv.Itoa(w.tokens), ""
		if w.old {
			usage, none = usage+`,"prompt_tokens_details":null`, `,"usage":null`
		}
		w.send(`{"id":"cmpl-1","choices":[{"index":0,"text":`+string(quoted)+`,"finish_reason":`+reason+`}]`,
			`,"usage":`+usage+`}`, none+finish, `}`)
		return
	}
	w.send(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":`+string(quoted)+`},"finish_reason":`+reason+`}]`,
		`,"usage":{"prompt_tokens":7,"completion_tokens":`+strconv.Itoa(w.tokens)+`,"completion_tokens_details":{"reasoning_tokens":0}}`,
		finish, `}`)
}

// stream sends a whole stream with the given text, or the beginning of one.
func (w *writer) stream(text string) {
	for text != "" {
		n := 1 + w.random.IntN(min(len(text), 12))
		if w.random.IntN(4) == 0 {
			w.alike(": keep-alive" + w.eol + w.eol)
		}
		w.chunk(text[:n], "null")
		text = text[n:]
	}
	switch w.random.IntN(4) {
	case 0:
		return
	case 1:
		w.alike(`data: {"error": {"message": "x", "code": 500}}` + w.eol + w.eol)
	default:
		w.chunk("", `"stop"`)
		w.with.WriteString(`data: {"id":"x","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":` + strconv.Itoa(w.tokens) + `}`)
		if !w.old {
			w.with.WriteString(`,"system_fingerprint":"vllm-9","metrics":{"queue_time_ms":0.1}`)
		}
		w.with.WriteString(`}` + w.eol + w.eol)
	}
	w.alike("data: [DONE]" + w.eol + w.eol)
}

// FuzzHide_Pair: of a stream with usage there is left, byte for byte, the stream
// without.
func FuzzHide_Pair(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(`"usage":{} }],"usage":{"a":1}}`+"\n\ndata: [DONE]\u2028 é\\", seed)
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := writer{
			random: random,
			d:      []dialect.Dialect{dialect.Chat, dialect.Completions}[random.IntN(2)],
			old:    random.IntN(2) == 0,
			eol:    []string{"\n", "\r\n", "\r"}[random.IntN(3)],
		}
		w.stream(text)
		size := 1 + random.IntN(200)
		if got := hidden(w.d, both, w.with.String(), size); got != w.without.String() {
			t.Fatalf("pieces of %d of %q\n got %q\nwant %q", size, w.with.String(), got, w.without.String())
		}
	})
}

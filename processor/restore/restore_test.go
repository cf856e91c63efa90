package restore_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/restore"
	"github.com/inferspan/inferspan/processor/sse"
)

const recordings = "../../internal/testkit/testdata/streams"

// edited is what a client gets of a response that comes in these pieces, each
// spoilt after.
func edited(d dialect.Dialect, model string, stream bool, pieces ...[]byte) []byte {
	e := restore.New(d, model, stream)
	var out []byte
	for _, piece := range pieces {
		p := bytes.Clone(piece)
		out = e.Write(out, p)
		for i := range p {
			p[i] = '#'
		}
	}
	return e.Close(out)
}

// sized cuts b into pieces of n bytes.
func sized(b []byte, n int) [][]byte {
	var pieces [][]byte
	for len(b) > n {
		pieces, b = append(pieces, b[:n]), b[n:]
	}
	return append(pieces, b)
}

// everyCut holds what is edited against want: whole, in pieces of one size, and cut
// once at some places, at every one of a short response.
func everyCut(t *testing.T, d dialect.Dialect, model string, stream bool, response, want []byte) {
	t.Helper()
	f := func(cut string, pieces ...[]byte) {
		t.Helper()
		if got := edited(d, model, stream, pieces...); !bytes.Equal(got, want) {
			t.Fatalf("%s:\n got %q\nwant %q", cut, got, want)
		}
	}
	for _, n := range []int{len(response) + 1, 1, 2, 3, 7, 100, 1000} {
		f("pieces of "+strconv.Itoa(n), sized(response, n)...)
	}
	random := rand.New(rand.NewPCG(1, uint64(len(response))))
	for i := range min(len(response), 200) {
		at := i
		if len(response) > 200 {
			at = random.IntN(len(response))
		}
		f("cut at "+strconv.Itoa(at), response[:at], response[at:])
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*dialect.MaxModel)
	for name, tt := range map[string]struct {
		d        dialect.Dialect
		in, want string
	}{
		"chunk":              {dialect.Chat, "data: {\"id\":\"1\",\"model\":\"v2\",\"choices\":[]}\n\n", "data: {\"id\":\"1\",\"model\":\"a\\\"b\",\"choices\":[]}\n\n"},
		"not in content":     {dialect.Chat, "data: {\"choices\":[{\"model\":\"v2\",\"delta\":{\"content\":\"\\\"model\\\":\\\"v2\\\"\"}}],\"model\" : \"v2\"}\n\n", "data: {\"choices\":[{\"model\":\"v2\",\"delta\":{\"content\":\"\\\"model\\\":\\\"v2\\\"\"}}],\"model\" : \"a\\\"b\"}\n\n"},
		"CRLF":               {dialect.Chat, "data:{\"model\":\"v2\"}\r\n\r\ndata:{\"model\":\"v2\"}\r\n\r\n", "data:{\"model\":\"a\\\"b\"}\r\n\r\ndata:{\"model\":\"a\\\"b\"}\r\n\r\n"},
		"CR":                 {dialect.Chat, "data:{\"model\":\"v2\"}\r\rdata:{\"model\":\"v2\"}\r", "data:{\"model\":\"a\\\"b\"}\r\rdata:{\"model\":\"a\\\"b\"}\r"},
		"many lines":         {dialect.Chat, "data: {\"x\":[1\n: hm\ndata: ],\"model\":\ndata:\"v2\"\nevent: x\ndata: ,\"n\":1}\n\n", "data: {\"x\":[1\n: hm\ndata: ],\"model\":\ndata:\"a\\\"b\"\nevent: x\ndata: ,\"n\":1}\n\n"},
		"a mark":             {dialect.Chat, "\xEF\xBB\xBFdata: {\"model\":\"v2\"}\n\n", "\xEF\xBB\xBFdata: {\"model\":\"a\\\"b\"}\n\n"},
		"a part of a mark":   {dialect.Chat, "\xEFdata: {\"model\":\"v2\"}\n\n", "\xEFdata: {\"model\":\"v2\"}\n\n"},
		"a mark later":       {dialect.Chat, "\n\xEF\xBB\xBFdata: {\"model\":\"v2\"}\n\n", "\n\xEF\xBB\xBFdata: {\"model\":\"v2\"}\n\n"},
		"no data line":       {dialect.Chat, "datas: {\"model\":\"v2\"}\nda: {\"model\":\"v2\"}\n: {\"model\":\"v2\"}\ndata\n\n", "datas: {\"model\":\"v2\"}\nda: {\"model\":\"v2\"}\n: {\"model\":\"v2\"}\ndata\n\n"},
		"ends and errors":    {dialect.Chat, "data: [DONE]\n\ndata: {\"error\":{\"message\":\"v2\",\"model\":\"v2\"}}\n\ndata:\n\n", "data: [DONE]\n\ndata: {\"error\":{\"message\":\"v2\",\"model\":\"v2\"}}\n\ndata:\n\n"},
		"no JSON, then JSON": {dialect.Chat, "data: {\"model\":\"v2\ndata: \",\"model\":\"v2\"}\n\ndata: {\"model\":\"v2\"}\n\n", "data: {\"model\":\"v2\ndata: \",\"model\":\"v2\"}\n\ndata: {\"model\":\"a\\\"b\"}\n\n"},
		"a long name":        {dialect.Chat, "data: {\"model\":\"" + long + "\"}\n\n", "data: {\"model\":\"a\\\"b\"}\n\n"},
		"long, never ends":   {dialect.Chat, "data: {\"model\":\"" + long + "\ndata: {\"model\":\"v2\"}\n\ndata: {\"model\":\"v2\"}\n\n", "data: {\"model\":\"a\\\"b\"\ndata: {\"model\":\"v2\"}\n\ndata: {\"model\":\"a\\\"b\"}\n\n"},
		"null and others":    {dialect.Chat, "data: {\"model\":null,\"x\":{\"model\":\"v2\"},\"model\":7,\"model\":[\"v2\"]}\n\n", "data: {\"model\":null,\"x\":{\"model\":\"v2\"},\"model\":7,\"model\":[\"v2\"]}\n\n"},
		"no blank line":      {dialect.Chat, "data: {\"model\":\"v2\"}", "data: {\"model\":\"a\\\"b\"}"},
		"breaks off":         {dialect.Chat, "data: {\"model\":\"v", "data: {\"model\":\"v"},
		"responses":          {dialect.Responses, "event: e\ndata: {\"response\":{\"output\":[{\"model\":\"v2\"}],\"model\":\"v2\"},\"type\":\"e\",\"message\":{\"model\":\"v2\"}}\n\n", "event: e\ndata: {\"response\":{\"output\":[{\"model\":\"v2\"}],\"model\":\"a\\\"b\"},\"type\":\"e\",\"message\":{\"model\":\"v2\"}}\n\n"},
		"messages":           {dialect.Messages, "event: e\ndata: {\"type\":\"e\",\"message\":{\"content\":[],\"model\":\"v2\"},\"response\":{\"model\":\"v2\"}}\n\n", "event: e\ndata: {\"type\":\"e\",\"message\":{\"content\":[],\"model\":\"a\\\"b\"},\"response\":{\"model\":\"v2\"}}\n\n"},
		"answer in answer":   {dialect.Responses, "data: {\"response\":{\"response\":{\"model\":\"v2\"}},\"response\":\"v2\"}\n\n", "data: {\"response\":{\"response\":{\"model\":\"v2\"}},\"response\":\"v2\"}\n\n"},
		"chat has no answer": {dialect.Chat, "data: {\"response\":{\"model\":\"v2\"},\"message\":{\"model\":\"v2\"}}\n\n", "data: {\"response\":{\"model\":\"v2\"},\"message\":{\"model\":\"v2\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyCut(t, tt.d, `a"b`, true, []byte(tt.in), []byte(tt.want))
		})
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d        dialect.Dialect
		in, want string
	}{
		"chat":       {dialect.Chat, `{"id":"1","model":"v2","choices":[{"message":{"content":"v2","model":"v2"}}]}` + "\n", `{"id":"1","model":"é","choices":[{"message":{"content":"v2","model":"v2"}}]}` + "\n"},
		"responses":  {dialect.Responses, `{"model":"v2","output":[{"model":"v2"}]}`, `{"model":"é","output":[{"model":"v2"}]}`},
		"messages":   {dialect.Messages, `{"content":[{"text":"v2"}],"mod\u0065l":"v\u0032"}`, `{"content":[{"text":"v2"}],"mod\u0065l":"é"}`},
		"embeddings": {dialect.Pooling, `{"data":[{"embedding":[0.1,-2e-3]}],"model":"v2"}`, `{"data":[{"embedding":[0.1,-2e-3]}],"model":"é"}`},
		"unknown":    {dialect.Unknown, `{"model":"v2"}`, `{"model":"é"}`},
		"an error":   {dialect.Chat, `{"error":{"message":"The model v2 does not exist","param":"model","model":"v2"}}`, `{"error":{"message":"The model v2 does not exist","param":"model","model":"v2"}}`},
		"a list":     {dialect.Chat, `[{"model":"v2"}]`, `[{"model":"v2"}]`},
		"no JSON":    {dialect.Chat, `data: {"model":"v2"}`, `data: {"model":"v2"}`},
		"null":       {dialect.Chat, `{"model":null}`, `{"model":null}`},
		"empty":      {dialect.Chat, ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyCut(t, tt.d, "é", false, []byte(tt.in), []byte(tt.want))
		})
	}
}

// A stream under way allocates nothing, and holds nothing but names.
func TestEventsGoOutAtOnce(t *testing.T) {
	event := []byte("data: {\"id\":\"1\",\"model\":\"v2\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
	e := restore.New(dialect.Chat, "name", true)
	out := make([]byte, 0, 4<<10)
	if n := testing.AllocsPerRun(100, func() {
		out = e.Write(out[:0], event)
		out = e.Write(out, event[:30])
		out = e.Write(out, event[30:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	out = out[:0]
	for i := range event {
		if out = e.Write(out, event[i:i+1]); i+1-len(out) > len(`"v2`) {
			t.Fatalf("%d of %d bytes went out", len(out), i+1)
		}
	}
}

// setModel changes the model where a text of dialect d has it.
func setModel(d dialect.Dialect, v any, model string) {
	set := func(v any) {
		if o, ok := v.(map[string]any); ok {
			if _, ok := o["model"].(string); ok {
				o["model"] = model
			}
		}
	}
	set(v)
	if o, ok := v.(map[string]any); ok {
		if d == dialect.Responses {
			set(o["response"])
		}
		if d == dialect.Messages {
			set(o["message"])
		}
	}
}

// texts are the JSON texts of a response, decoded; what is none is as it came.
func texts(b []byte, stream bool) []any {
	if !stream {
		return []any{decoded(b)}
	}
	var all []any
	p := sse.New(0)
	p.Push(b)
	for ev, ok := p.Next(); ok; ev, ok = p.Next() {
		all = append(all, string(ev.Type), decoded(ev.Data))
	}
	return append(all, p.KeepAlives())
}

func decoded(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(b)
	}
	return v
}

// Every recorded response: what encoding/json reads of it differs by the model and
// by nothing else, and with the server's own name put back it is the same bytes.
func TestRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(recordings + "/*.jsonl")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	restored := 0
	for _, file := range files {
		rec, err := recording.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Head == nil {
			continue
		}
		var body []byte
		stream, server := false, ""
		for _, p := range rec.Pieces {
			body = append(body, p.Data...)
		}
		for _, h := range rec.Head.Headers {
			stream = stream || h.Name == "content-type" && strings.HasPrefix(h.Value, "text/event-stream")
		}
		d := dialect.ForPath(rec.Request.Path)
		const model = `the client's "name"`
		got := edited(d, model, stream, body)
		want := texts(body, stream)
		for _, v := range want {
			server = max(server, modelOf(d, v))
			setModel(d, v, model)
		}
		if !reflect.DeepEqual(texts(got, stream), want) {
			t.Errorf("%s: got %s", rec.Name, got)
		}
		everyCut(t, d, model, stream, body, got)
		if server == "" {
			if !bytes.Equal(got, body) {
				t.Errorf("%s names no model, and is %s", rec.Name, got)
			}
			continue
		}
		restored++
		if back := edited(d, server, stream, got); !bytes.Equal(back, body) {
			t.Errorf("%s: back again it is %s", rec.Name, back)
		}
	}
	if restored < 50 {
		t.Errorf("only %d recordings name a model", restored)
	}
}

func modelOf(d dialect.Dialect, v any) string {
	o, _ := v.(map[string]any)
	for _, key := range []string{"response", "message"} {
		if in, ok := o[key].(map[string]any); ok && o["model"] == nil && (d == dialect.Responses || d == dialect.Messages) {
			o = in
		}
	}
	s, _ := o["model"].(string)
	return s
}

// FuzzRestore: for any response and any cutting the bytes are the same; what
// encoding/json reads differs by the models; and a response that has none is left
// alone.
func FuzzRestore(f *testing.F) {
	for _, s := range []string{
		"data: {\"model\":\"v2\",\"x\":{\"model\":\"no\"}}\n\nevent: e\ndata: [DONE]\n\n",
		"\xEF\xBB\xBF: c\r\ndata: {\"response\":{\"model\":\"v2\"},\r\ndata:\"message\":{\"mod\\u0065l\":\"v\\\"2\"}}\r\n\r\n",
		"data: {\"model\":\"v2\rdata: \"}\r\rdata: {\"model\":\"v2\"}", `{"model":"v2","choices":[{"model":"no"}]}`,
		"data: {\"model\":null,\"model\":\"" + strings.Repeat("x", 2000) + "\"}\n\n",
	} {
		for d := range uint8(5) {
			f.Add([]byte(s), []byte{1, 0, 3, 255, 12}, d, strings.Contains(s, "data:"))
		}
	}
	f.Fuzz(func(t *testing.T, response, places []byte, kind uint8, stream bool) {
		d := dialect.Dialect(kind % 8)
		const model = "a name"
		want := edited(d, model, stream, response)
		var pieces [][]byte
		rest := response
		for _, n := range places {
			k := min(int(n), len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		if got := edited(d, model, stream, append(pieces, rest)...); !bytes.Equal(got, want) {
			t.Fatalf("%q, cut by %v:\n got %q\nwant %q", response, places, got, want)
		}
		if !bytes.Contains(response, []byte("model")) && !bytes.Contains(response, []byte(`\u`)) && !bytes.Equal(want, response) {
			t.Fatalf("%q became %q", response, want)
		}
		before, after := texts(response, stream), texts(want, stream)
		for _, v := range before {
			setModel(d, v, model)
		}
		if len(before) != len(after) {
			t.Fatalf("%q became %q", response, want)
		}
		for i := range before {
			if _, ok := before[i].(map[string]any); ok && !reflect.DeepEqual(before[i], after[i]) {
				t.Fatalf("%q became %q", response, want)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	frame := []byte("data: {\"id\":\"chatcmpl-9695373a29a93e75\",\"object\":\"chat.completion.chunk\",\"created\":1796033940,\"model\":\"v2\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n")
	e := restore.New(dialect.Chat, "name", true)
	out := make([]byte, 0, 2*len(frame))
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		out = e.Write(out[:0], frame)
	}
}

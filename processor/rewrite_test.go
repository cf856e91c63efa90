package processor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
)

// carried is what becomes of a request's body.
type carried struct {
	upstream []byte
	asked    route.Request // of the router
	served   string        // the name that the decision gives the model
}

// carry sends a chat request with the body in these pieces, of which BUFFERED
// makes one.
func carry(t *testing.T, mode wire.BodyMode, pieces ...[]byte) carried {
	t.Helper()
	s, tel := newTestService()
	var got carried
	s.cfg.Router.(*fakeRouter).decideBy = func(q route.Request) route.Decision {
		d := toEndpoint(q)
		if q.HasModel && len(q.Model)%2 == 1 {
			first, _ := utf8.DecodeRuneInString(q.Model) // no configuration cuts a rune
			d.Model = "served as " + string(first)
		}
		if got.asked, got.served = q, d.Model; d.Model == "" {
			got.served = q.Model
		}
		return d
	}
	out := &replies{}
	x := newExchange(s, out, caller{})
	deliver(t, x, epoch, message{phase: "request_headers", headers: chatHead(), request: mode, response: wire.ModeStreamed})
	if mode == wire.ModeBuffered {
		pieces = [][]byte{bytes.Join(pieces, nil)}
	}
	for i, p := range pieces {
		m := message{phase: "request_body", end: i == len(pieces)-1}.wire()
		m.Body = append(append(make([]byte, 0, len(p)+64), p...), "what follows in the message"...)[:len(p)]
		out.sent = out.sent[:0]
		if _, err := x.handle(m, epoch); err != nil {
			t.Fatal(err)
		}
		if rest := m.Body[:cap(m.Body)]; !bytes.HasPrefix(rest[len(p):], []byte("what follows")) {
			t.Fatalf("what follows the frame became %q", rest[len(p):])
		}
		switch {
		case mode != wire.ModeBuffered:
			for _, r := range out.sent {
				got.upstream = append(got.upstream, r.Body...)
			}
		case out.sent[0].HasBody:
			got.upstream = out.sent[0].Body
		default:
			got.upstream = p
		}
	}
	x.closed(epoch)
	if tel.count(countPanic) != 0 {
		t.Fatal("something panicked")
	}
	return got
}

func cutBy(body, places []byte) [][]byte {
	var p [][]byte
	for _, n := range places {
		k := min(int(n), len(body))
		p, body = append(p, body[:k]), body[k:]
	}
	return append(p, body)
}

// What a server reads, which takes the last of several models: the one decided
// on, whatever came after the decision. BUFFERED, and a body that comes in one
// piece, are decided by the last.
func TestServerReadsTheModelDecidedOn(t *testing.T) {
	long := strings.Repeat("l", 2*dialect.MaxModel)
	for name, tt := range map[string]struct {
		// first is known when the decision falls in FULL_DUPLEX_STREAMED.
		first, rest      string
		streamed, served string // what the server reads, and in BUFFERED
	}{
		"one":              {`{"model":"ab",`, `"n":1}`, "ab", "ab"},
		"another":          {`{"model":"ab",`, `"model":"cd"}`, "ab", "cd"},
		"another, renamed": {`{"model":"abc",`, `"model":"cd"}`, "served as a", "cd"},
		"escaped":          {`{"model":"ab",`, `"mod\u0065l":"cd"}`, "ab", "cd"},
		"the same":         {`{"model":"ab",`, `"model":"\u0061b"}`, "ab", "ab"},
		"two at once":      {`{"model":"ab","model":"cd",`, `"n":1}`, "cd", "cd"},
		"inside":           {`{"model":"ab",`, `"x":{"model":"cd"}}`, "ab", "ab"},
		"no name":          {`{"model":"",`, `"model":"cd"}`, "", "cd"},
		"a number, then":   {`{"model":"ab","model":7,`, `"model":"cd"}`, "cd", "cd"},
		"null":             {`{"model":"ab",`, `"model":null}`, "ab", ""},
		"a long one":       {`{"model":"ab",`, `"model":"` + long + `"}`, "ab", long[:dialect.MaxModel]},
		"a long one first": {`{"model":"` + long + `",`, `"model":"cd"}`, long[:dialect.MaxModel], "cd"},
	} {
		t.Run(name, func(t *testing.T) {
			for mode, want := range map[wire.BodyMode]string{wire.ModeFullDuplex: tt.streamed, wire.ModeBuffered: tt.served} {
				got := carry(t, mode, []byte(tt.first), []byte(tt.rest))
				var body map[string]any
				err := json.Unmarshal(got.upstream, &body)
				if model, _ := body["model"].(string); err != nil || model != want || got.served != want {
					t.Errorf("mode %d: %v: the server got %s, decided on was %q", mode, err, cut(string(got.upstream)), got.served)
				}
			}
			whole := carry(t, wire.ModeFullDuplex, []byte(tt.first+tt.rest))
			buffered := carry(t, wire.ModeBuffered, []byte(tt.first+tt.rest))
			if !bytes.Equal(whole.upstream, buffered.upstream) || whole.served != buffered.served {
				t.Errorf("in one piece the server got %s, decided on was %q", whole.upstream, whole.served)
			}
		})
	}
}

// FuzzServedModel: for any body and any cutting a server, as encoding/json reads
// it, gets no model but the one decided on, and all else as it was.
func FuzzServedModel(f *testing.F) {
	for _, body := range []string{
		`{"model":"ab","messages":[{"role":"user","content":"\"model\":\"cd\""}],"model":"cd"}`,
		`{"mod\u0065l":"a\u0000b","model":null,"model":7,"model":"\ud83d\ude00","x":[{"model":"no"}]}`,
		`{"model":"abc","n":1,"model":"` + strings.Repeat("é", 600) + `","model":"d"}`,
		`{"model":"","model":["ab"],"model":{"model":"ab"}}`, `{"model":"a","model":0,"model":"b"}`,
		"\xEF\xBB\xBF {\"model\" : \"abc\" , \"model\":\"\xff\"}\n{}", `{"model":"ab" "model":"cd"}`, `["model"]`,
	} {
		f.Add([]byte(body), []byte{12, 0, 7, 1, 1, 1})
		f.Add([]byte(body), []byte{})
	}
	f.Fuzz(func(t *testing.T, body, places []byte) {
		whole := carry(t, wire.ModeBuffered, body)
		for _, got := range []carried{whole, carry(t, wire.ModeFullDuplex, cutBy(body, places)...)} {
			if got.served == "" && !got.asked.HasModel && !bytes.Equal(got.upstream, body) {
				t.Fatalf("no model, yet %q became %q", body, got.upstream)
			}
			if !json.Valid(body) || !utf8.Valid(body) {
				continue
			}
			var before, after map[string]any
			if json.Unmarshal(body, &before) != nil {
				continue
			}
			if err := json.Unmarshal(got.upstream, &after); err != nil {
				t.Fatalf("%q became %q: %v", body, got.upstream, err)
			}
			if read, ok := after["model"].(string); ok && (!got.asked.HasModel || read != got.served) {
				t.Fatalf("of %q the server reads %q, decided on was %q", body, read, got.served)
			}
			delete(before, "model")
			delete(after, "model")
			if !reflect.DeepEqual(before, after) {
				t.Fatalf("%q became %q", body, got.upstream)
			}
		}
		if one := carry(t, wire.ModeFullDuplex, body); !bytes.Equal(one.upstream, whole.upstream) {
			t.Fatalf("%q became %q in one piece, %q in BUFFERED", body, one.upstream, whole.upstream)
		}
	})
}

// passing takes replies and keeps no more than their size.
type passing struct {
	bytes   int
	largest int
	ended   bool
}

func (p *passing) Send(r *wire.Reply) error {
	p.bytes += len(r.Body)
	p.largest = max(p.largest, len(r.Body))
	p.ended = p.ended || r.EndOfStream
	return nil
}

// upload sends a chat request whose prompt comes in n frames, and returns how many
// bytes were allocated for it.
func upload(tb testing.TB, model string, n int, frame []byte) (allocated uint64) {
	tb.Helper()
	s, _ := newTestService()
	out := &passing{}
	x := newExchange(s, out, caller{})
	send := func(m message, body []byte) {
		w := m.wire()
		w.Body = body
		if _, err := x.handle(w, epoch); err != nil {
			tb.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	head, tail := []byte(`{"model":"`+model+`","messages":[{"role":"user","content":"`), []byte(`"}]}`)
	send(message{phase: "request_headers", headers: chatHead(), request: wire.ModeFullDuplex, response: wire.ModeStreamed}, nil)
	send(message{phase: "request_body"}, head)
	for range n {
		send(message{phase: "request_body"}, frame)
	}
	send(message{phase: "request_body", end: true}, tail)
	runtime.ReadMemStats(&after)
	x.closed(epoch)
	want := len(head) + n*len(frame) + len(tail)
	if model == "alias" {
		want += len("real-name") - len("alias")
	}
	if out.bytes != want || out.largest > maxPiece || !out.ended {
		tb.Fatalf("%d bytes went out, %d at once; want %d, %d at most", out.bytes, out.largest, want, maxPiece)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// A prompt of a hundred megabytes takes no more memory than one of ten, whether
// its model gets another name or not. Frames are as large as Envoy's.
func TestMemoryOfALargePrompt(t *testing.T) {
	frame := bytes.Repeat([]byte(`a line of \"text\"\n`), 2<<20/19)
	for _, model := range []string{"m", "alias"} {
		upload(t, model, 1, frame)
		small, large := upload(t, model, 5, frame), upload(t, model, 50, frame)
		const slack = 1 << 20 // half a frame; the runtime takes some of its own
		if large > small+slack || small > slack {
			t.Errorf("%s: 10 MB took %d bytes of memory, 100 MB %d", model, small, large)
		}
	}
}

func BenchmarkUpload(b *testing.B) {
	for _, size := range []int{1 << 10, 220 << 10, 100 << 20} {
		frame := bytes.Repeat([]byte("a"), min(size, 1<<20))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				upload(b, "alias", size/len(frame), frame)
			}
		})
	}
}

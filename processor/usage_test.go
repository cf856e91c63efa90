package processor

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// What a server sends that was asked for usage, and what a client gets of it.
const (
	counted1  = `data: {"choices":[{"index":0,"delta":{"content":"yes"}}],"usage":{"prompt_tokens":5,"completion_tokens":3}}` + "\n\n"
	counted2  = `data: {"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}` + "\n\n"
	countLast = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7},"system_fingerprint":"vllm-1"}` + "\n\n"
	plain1    = `data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}` + "\n\n"
	plain2    = `data: {"choices":[{"index":0,"delta":{"content":"."},"finish_reason":"stop"}],"system_fingerprint":"vllm-1"}` + "\n\n"
	doneMark  = "data: [DONE]\n\n"

	asksNothing = `{"model":"m","stream":true}`
	asksAll     = `{"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`
)

func askAuto(c *Config) { c.AskUsage = AskAuto }

// pieces cuts s into pieces of n bytes.
func pieces(s string, n int) []string {
	var out []string
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// The server is asked, the client does not see it, and the record has the tokens
// from what the server sent: in every mode that can do so, for every cut.
func TestUsageIsAskedAndHidden(t *testing.T) {
	const sent, want = counted1 + counted2 + countLast + doneMark, plain1 + plain2 + doneMark
	for _, request := range []bodyMode{buffered, duplex} {
		for _, response := range []bodyMode{streamed, duplex} {
			for _, size := range []int{1, 7, 100, 1000} {
				for _, emptyEnd := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/%t", request, response, size, emptyEnd), func(t *testing.T) {
						b := newBench(t, askAuto)
						e := b.inline(request, response)
						got := play(t, e, request, response, shape{
							head:    append(chatHead(), "accept-encoding", "gzip"),
							request: pieces(asksNothing, size), response: pieces(sent, size), emptyEnd: emptyEnd,
						})
						e.hangUp()
						if got.upstream != asksAll {
							t.Errorf("the server got %q", got.upstream)
						}
						if got.downstream != want {
							t.Errorf("the client got\n%s\nwant\n%s", got.downstream, want)
						}
						if got.set[acceptEncoding] != identity {
							t.Errorf("accept-encoding is set to %q", got.set[acceptEncoding])
						}
						if length := got.set["content-length"]; request == buffered && length != fmt.Sprint(len(asksAll)) {
							t.Errorf("content-length is %q", length)
						}
						r := b.one()
						if r.OutputTokens != meter.Some[int64](7) || r.OutputSource != meter.SourceUsage || r.Bytes != int64(len(sent)) || r.Outcome != meter.OK {
							t.Errorf("%v tokens from %s, %d bytes, %s", r.OutputTokens, r.OutputSource, r.Bytes, r.Outcome)
						}
						if r.Asked.IncludeUsage {
							t.Error("the record says that the client asked")
						}
					})
				}
			}
		}
	}
}

// A client that asked for the last event gets it, and no more.
func TestUsageOfAClientThatAsksForSome(t *testing.T) {
	b := newBench(t, askAuto)
	e := b.inline(duplex, streamed)
	got := play(t, e, duplex, streamed, shape{
		request:  []string{`{"model":"alias","stream":true,`, `"stream_options":{"include_usage":true}}`},
		response: []string{counted1, counted2 + countLast, doneMark},
	})
	e.hangUp()
	if want := strings.Replace(asksAll, `"m"`, `"real-name"`, 1); got.upstream != want {
		t.Errorf("the server got %q", got.upstream)
	}
	want := plain1 + strings.Replace(plain2, `,"system_fingerprint":"vllm-1"`, "", 1) + countLast + doneMark
	if got.downstream != want {
		t.Errorf("the client got\n%s\nwant\n%s", got.downstream, want)
	}
	b.one()
}

// An exchange that breaks off is exact to the token, and what was held is gone
// with it.
func TestUsageOfAnAbortedStream(t *testing.T) {
	for _, response := range []bodyMode{streamed, duplex} {
		b := newBench(t, askAuto)
		e := b.inline(buffered, response)
		asked(e)
		e.send(responseHeaders(false, streamHead...))
		e.recv()
		e.send(responseBody(counted1+counted2[:30], false))
		m := e.recv().GetResponseBody().GetResponse().GetBodyMutation()
		if got := string(m.GetBody()) + string(m.GetStreamedResponse().GetBody()); got != plain1 {
			t.Errorf("%s: the client got %q", response, got)
		}
		e.closeSend()
		r := b.one()
		if r.OutputTokens != meter.Some[int64](3) || r.OutputSource != meter.SourceContinuous || r.Outcome != meter.Aborted {
			t.Errorf("%s: %v tokens from %s, %s", response, r.OutputTokens, r.OutputSource, r.Outcome)
		}
	}
}

// What is none of an asked stream passes as it is.
func TestUsageOfOtherAnswers(t *testing.T) {
	for name, s := range map[string]shape{
		"JSON":         {responseHead: []string{":status", "200", "content-type", "application/json"}, response: []string{`{"choices":[],"usage":{}}`}},
		"error":        {responseHead: []string{":status", "500", "content-type", "text/event-stream"}, response: []string{countLast}},
		"not all sent": {response: []string{counted1[:50]}},
		"no body":      {},
	} {
		for _, response := range []bodyMode{streamed, duplex} {
			b := newBench(t, askAuto)
			e := b.inline(buffered, response)
			s.request = []string{asksNothing}
			got := play(t, e, buffered, response, s)
			e.hangUp()
			if want := strings.Join(s.response, ""); got.downstream != want || got.upstream != asksAll {
				t.Errorf("%s, %s: the client got %q, want %q", name, response, got.downstream, want)
			}
			b.one()
		}
	}
}

// Trailers end a stream: in FULL_DUPLEX_STREAMED what is held goes before them,
// in STREAMED there is no way, which is counted.
func TestUsageAndTrailers(t *testing.T) {
	for _, c := range []struct {
		response bodyMode
		sent     string
		want     string
		lost     int
	}{
		{streamed, counted1 + countLast, plain1, 0},
		{duplex, counted1 + counted2[:30], plain1 + counted2[:30], 0},
		{streamed, counted1 + counted2[:30], plain1, 1},
	} {
		b := newBench(t, askAuto)
		e := b.inline(buffered, c.response)
		got := play(t, e, buffered, c.response, shape{
			request: []string{asksNothing}, response: []string{c.sent}, responseTrailers: true,
		})
		e.hangUp()
		b.one()
		if got.downstream != c.want || b.telemetry.count(countHeldLost) != c.lost {
			t.Errorf("%s: the client got %q, %d lost", c.response, got.downstream, b.telemetry.count(countHeldLost))
		}
	}
}

// Nothing is asked where it could not be hidden again, where there is nothing to
// ask, or where it is not wanted.
func TestUsageIsNotAsked(t *testing.T) {
	tune := func(a AskUsage) func(*Config) { return func(c *Config) { c.AskUsage = a } }
	for name, c := range map[string]struct {
		ask               AskUsage
		request, response bodyMode
		head              []string
		body              string
	}{
		"never":             {ask: AskNever, request: buffered, response: streamed},
		"buffered response": {ask: AskAlways, request: buffered, response: buffered},
		"split, auto":       {ask: AskAuto, request: buffered, response: none},
		"streamed request":  {ask: AskAuto, request: streamed, response: streamed},
		"another path":      {ask: AskAuto, request: duplex, response: duplex, head: []string{":method", "POST", ":path", "/v1/embeddings"}},
		"coded only":        {ask: AskAuto, request: buffered, response: streamed, head: append(chatHead(), "accept-encoding", "gzip, identity;q=0")},
		"no stream":         {ask: AskAuto, request: buffered, response: streamed, body: `{"model":"m"}`},
		"all asked":         {ask: AskAuto, request: duplex, response: streamed, body: asksAll},
	} {
		t.Run(name, func(t *testing.T) {
			if c.body == "" {
				c.body = asksNothing
			}
			b := newBench(t, tune(c.ask))
			e := b.inline(c.request, c.response)
			got := play(t, e, c.request, c.response, shape{head: c.head, request: []string{c.body}, response: []string{counted1, countLast}})
			e.hangUp()
			b.drained()
			if got.upstream != c.body {
				t.Errorf("the server got %q", got.upstream)
			}
			if got.downstream != counted1+countLast {
				t.Errorf("the client got %q", got.downstream)
			}
		})
	}
}

// Where the response is another filter's, only always asks, and the client sees
// what comes.
func TestUsageIsAskedAlways(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AskUsage = AskAlways })
	e := b.inline(buffered, none)
	got := play(t, e, buffered, none, shape{request: []string{asksNothing}, response: []string{counted1}})
	e.hangUp()
	b.drained()
	if got.upstream != asksAll || got.downstream != counted1 {
		t.Errorf("the server got %q, the client %q", got.upstream, got.downstream)
	}
}

// A server that codes its response all the same can't be edited.
func TestUsageInACodedResponseIsCounted(t *testing.T) {
	b := newBench(t, askAuto)
	e := b.inline(buffered, streamed)
	got := play(t, e, buffered, streamed, shape{
		request:      []string{asksNothing},
		responseHead: append(streamHead, "content-encoding", "gzip"), response: []string{"coded"},
	})
	e.hangUp()
	b.one()
	if got.downstream != "coded" || b.telemetry.count(countUnhidden) != 1 {
		t.Errorf("the client got %q, counted %d", got.downstream, b.telemetry.count(countUnhidden))
	}
}

// An event too large to hold passes with its usage, which is counted.
func TestUsageInALargeEventIsCounted(t *testing.T) {
	large := strings.Replace(counted1, "yes", strings.Repeat("y", 2<<20), 1)
	b := newBench(t, askAuto)
	e := b.inline(buffered, streamed)
	got := play(t, e, buffered, streamed, shape{request: []string{asksNothing}, response: []string{large, counted1}})
	e.hangUp()
	b.one()
	if got.downstream != large+plain1 || b.telemetry.count(countUnhidden) != 1 {
		t.Errorf("the client got %d bytes, counted %d", len(got.downstream), b.telemetry.count(countUnhidden))
	}
}

// askedFor plays one exchange and tells whether its server was asked.
func askedFor(t *testing.T, b *bench, body string, s shape) bool {
	t.Helper()
	e := b.inline(buffered, streamed)
	s.request = []string{body}
	got := play(t, e, buffered, streamed, s)
	e.hangUp()
	b.drained()
	return got.upstream != body
}

// A pool that sends usage to who did not ask is not asked until it has not done
// so for a while.
func TestUsageThatComesUnasked(t *testing.T) {
	now := time.Now()
	b := newBench(t, askAuto, func(c *Config) { c.Now = func() time.Time { return now } })
	usual := shape{response: []string{counted1, doneMark}}
	const two = `{"model":"m","stream":true,"n":2}`
	const open = `{"model":"m","stream":true,"n":2,"stream_options":{}}`
	if askedFor(t, b, open, usual) || !askedFor(t, b, asksNothing, usual) {
		t.Fatal("stream options that say nothing count as none, or nothing was asked")
	}
	if askedFor(t, b, two, shape{response: []string{plain1, doneMark}}) || !askedFor(t, b, asksNothing, usual) {
		t.Fatal("a stream without usage counts as one with it, or nothing was asked")
	}
	if askedFor(t, b, two, usual) || askedFor(t, b, asksNothing, usual) {
		t.Fatal("a pool that sends usage unasked was asked")
	}
	now = now.Add(unaskedFor - 1)
	if askedFor(t, b, asksNothing, usual) {
		t.Error("it was asked again too soon")
	}
	now = now.Add(unaskedFor - 1)
	if askedFor(t, b, asksNothing, shape{response: []string{plain1, doneMark}}) {
		t.Error("a pool that sent usage again was asked")
	}
	now = now.Add(1)
	if !askedFor(t, b, asksNothing, usual) {
		t.Error("it is not asked any more")
	}
}

// A pool that refuses what was asked is not asked again. An error that only shows
// the request is no refusal, nor is one that we had no part in.
func TestUsageThatIsRefused(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, askAuto, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	answer := func(status string, body ...string) shape {
		return shape{responseHead: []string{":status", status, "content-type", "application/json"}, response: body}
	}
	for _, s := range []shape{
		answer("400", `{"error":{"message":"Field required, input: {'stream_options': {'include_usage': True}, \"continuous_usage_stats\" : true}"}}`),
		answer("400", strings.Repeat("x", maxRefusal-3), "stream_options"),
		answer("500", `{"error":"stream_options"}`),
	} {
		if !askedFor(t, b, asksNothing, s) {
			t.Fatalf("not asked before %v", s.response)
		}
	}
	if askedFor(t, b, `{"model":"m"}`, answer("400", `stream_options`)) {
		t.Fatal("asked without a stream")
	}
	if !askedFor(t, b, asksNothing, answer("422", `{"loc":["body","stream_`, `options"],"msg":"Extra inputs are not permitted"}`)) {
		t.Fatal("not asked before it refused")
	}
	if askedFor(t, b, asksNothing, shape{response: []string{plain1}}) {
		t.Error("asked after it refused")
	}
	if n := strings.Count(log.String(), "refuses to be asked for usage"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
}

// An edited stream is not left on drain: what it holds would be missing.
func TestUsageBindsAStream(t *testing.T) {
	s, _ := newTestService()
	s.cfg.AskUsage = AskAuto
	x := newExchange(s, &replies{}, caller{})
	at := time.Time{}
	deliver(t, x, at, message{phase: "request_headers", headers: chatHead(), request: wire.ModeBuffered, response: wire.ModeStreamed})
	deliver(t, x, at, message{phase: "request_body", body: asksNothing, end: true})
	if x.bound() {
		t.Error("bound before the response")
	}
	deliver(t, x, at, message{phase: "response_headers", headers: streamHead})
	if !x.bound() {
		t.Error("not bound while it is edited")
	}
	deliver(t, x, at, message{phase: "response_body", body: counted1, end: true})
	if x.bound() {
		t.Error("bound at its end")
	}
}

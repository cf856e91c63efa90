package processor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/route"
)

var longPrompt = `[{"role":"user","content":"` + strings.Repeat("a prompt of some length ", 100) + `"}]`

// asking is the one request that the router was asked about.
func (b *bench) asking() route.Request {
	b.t.Helper()
	b.router.mu.Lock()
	defer b.router.mu.Unlock()
	if len(b.router.asked) != 1 {
		b.t.Fatalf("the router was asked %d times", len(b.router.asked))
	}
	return b.router.asked[0]
}

func prefixOf(body string) []uint64 {
	s := dialect.NewScanner(dialect.Chat, "")
	s.KeepPrefix()
	s.Write([]byte(body))
	return s.Prompt().Prefix
}

// In every mode in which the body is there before the decision, the router gets
// all that a policy may pick by, in whatever pieces it comes.
func TestWhatADecisionGets(t *testing.T) {
	for _, mode := range deciding {
		for _, size := range []int{100_000, 700, 1} {
			for name, body := range map[string]string{
				"model first": `{"model":"m","prompt_cache_key":"chat-7","messages":` + longPrompt + `,"stream":true}`,
				"model last":  `{"messages":` + longPrompt + `,"prompt_cache_key":"chat-7","model":"m"}`,
			} {
				t.Run(fmt.Sprintf("%s/%s/%d", mode, name, size), func(t *testing.T) {
					b := newBench(t)
					b.router.byPrefix = true
					e := b.inline(mode, streamed)
					got := play(t, e, mode, streamed, shape{request: pieces(body, size), response: []string{"{}"}})
					e.hangUp()
					if got.upstream != body {
						t.Errorf("the server got %q", cut(got.upstream))
					}
					q := b.asking()
					want := prefixOf(body)
					if len(want) < 4 || !slices.Equal(q.Prefix, want) || q.Session != "chat-7" || q.Method != http.MethodPost {
						t.Errorf("the router got %+v, want the prefix %x", q, want)
					}
					if mode != duplex && q.PromptBytes != len(longPrompt) {
						t.Errorf("the prompt has %d bytes, want %d", q.PromptBytes, len(longPrompt))
					}
					b.one()
				})
			}
		}
	}
}

// With FULL_DUPLEX_STREAMED the decision waits for the prompt's prefix where a
// pool picks by it, and only there.
func TestDecisionWaitsForThePrefix(t *testing.T) {
	for _, byPrefix := range []bool{false, true} {
		t.Run(fmt.Sprint(byPrefix), func(t *testing.T) {
			b := newBench(t)
			b.router.byPrefix = byPrefix
			e := b.inline(duplex, streamed)
			e.send(requestHeaders(false, append(chatHead(), "content-length", "50000")...))
			frames := []string{`{"model":"m","messages":["`, strings.Repeat("x", 4095), `y`, `"]}`}
			e.send(requestBody(frames[0], false))
			if byPrefix {
				e.send(requestBody(frames[1], false))
			}
			if e.recv().GetRequestHeaders() == nil {
				t.Fatal("the first reply is not that to the headers")
			}
			got := e.recv().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()
			if want := frames[0]; !byPrefix && string(got) != want || byPrefix && string(got) != want+frames[1] {
				t.Errorf("it was followed by %q", cut(string(got)))
			}
			if q := b.asking(); len(q.Prefix) != btoi(byPrefix)*dialect.PrefixBlocks || q.PromptBytes != 50_000 {
				t.Errorf("the router got %+v", q)
			}
			e.cancel()
			b.drained()
		})
	}
}

// Where the prefix does not come within the limit, the decision does without it:
// only the model's absence is a fault of the client.
func TestPrefixBeyondTheLimit(t *testing.T) {
	b := newBench(t, func(c *Config) { c.HoldLimit = 1000 })
	b.router.byPrefix = true
	e := b.inline(duplex, streamed)
	body := `{"model":"m","metadata":"` + strings.Repeat("x", 5000) + `","messages":` + longPrompt + `}`
	got := play(t, e, duplex, streamed, shape{request: pieces(body, 300), response: []string{"{}"}})
	e.hangUp()
	if got.upstream != body || got.immediate != nil {
		t.Errorf("the server got %q, the client %v", cut(got.upstream), got.immediate)
	}
	if q := b.asking(); q.Prefix != nil || q.Model != "m" {
		t.Errorf("the router got %+v", q)
	}
	b.one()
}

// A form tells its model and no prompt, and is not waited for.
func TestFormHasNoPrompt(t *testing.T) {
	b := newBench(t)
	b.router.byPrefix = true
	e := b.inline(duplex, streamed)
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	e.send(requestHeaders(false, ":method", "POST", ":path", "/v1/audio/transcriptions", "content-type", "multipart/form-data; boundary=b", "content-length", "9000000"))
	e.send(requestBody(form, false))
	if e.recv().GetRequestHeaders() == nil {
		t.Error("the first reply is not that to the headers")
	}
	if q := b.asking(); q.Model != "m" || q.PromptBytes != 0 || q.Prefix != nil {
		t.Errorf("the router got %+v", q)
	}
	e.cancel()
	b.drained()
}

// A header names the conversation before the body does, and of several headers
// the first in the order of the configuration.
func TestSessionByHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		headers []string
		want    string
	}{
		"none":          {nil, "of-the-body"},
		"the first":     {[]string{"x-b", "b", "X-A", "a"}, "a"},
		"the second":    {[]string{"x-b", "b", "x-c", "c"}, "b"},
		"an empty one":  {[]string{"x-a", "", "x-b", "b"}, "b"},
		"twice":         {[]string{"x-a", "1", "x-a", "2"}, "1"},
		"a longer name": {[]string{"x-a", strings.Repeat("s", 300)}, strings.Repeat("s", 256)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.SessionHeaders = []string{"x-a", "x-b"} })
			e := b.inline(buffered, streamed)
			play(t, e, buffered, streamed, shape{
				head: append(chatHead(), tt.headers...), request: []string{`{"model":"m","prompt_cache_key":"of-the-body"}`}, response: []string{"{}"},
			})
			e.hangUp()
			if q := b.asking(); q.Session != tt.want {
				t.Errorf("the session is %q, want %q", q.Session, tt.want)
			}
			b.one()
		})
	}
}

// Once an exchange is over, the router learns how long its prompt was, whatever
// was known at the decision.
func TestRouterLearnsThePromptsLength(t *testing.T) {
	for _, mode := range []bodyMode{streamed, buffered, duplex} {
		b := newBench(t)
		e := b.inline(mode, streamed)
		body := `{"model":"alias","messages":` + longPrompt + `}`
		play(t, e, mode, streamed, shape{request: pieces(body, 500), response: []string{"{}"}})
		e.hangUp()
		b.one()
		if n := len(b.router.results); n != 1 || b.router.results[0].PromptBytes != len(longPrompt) {
			t.Errorf("%s: the router was told %+v, want a prompt of %d bytes", mode, b.router.results, len(longPrompt))
		}
	}
}

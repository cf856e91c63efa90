package meter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// exchange is a scripted exchange. Its zero value is a stream of chat that ends
// cleanly.
type exchange struct {
	path, method          string // chat's and POST
	ask                   dialect.Request
	noHead                bool
	status                int    // 200
	contentType, encoding string // text/event-stream
	frames                []frame
	cause                 Cause
	end                   int // ms; 0: with the last frame
	options               Options
}

// frame is body bytes at a time in ms.
type frame struct {
	at   int
	body string
}

// at returns a frame with one event for each data.
func at(ms int, data ...string) frame {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return frame{ms, b.String()}
}

// raw returns a frame of these bytes.
func raw(ms int, body string) frame { return frame{ms, body} }

// ms returns a time that is there.
func ms(n int) Opt[time.Duration] { return Some(time.Duration(n) * time.Millisecond) }

func (x *exchange) meter() *Meter {
	path, method := x.path, x.method
	if path == "" {
		path = "/v1/chat/completions"
	}
	if method == "" {
		method = "POST"
	}
	return New(Start{Path: path, Method: method}, x.options)
}

// play plays the exchange and returns its record. It looks at the state after
// every frame, and at what a snapshot does to it.
func play(t *testing.T, x exchange) *Record {
	t.Helper()
	m := x.meter()
	x.ask.Dialect = dialect.ForPath(m.start.Path)
	m.Ask(x.ask)
	if !x.noHead {
		status, contentType := x.status, x.contentType
		if status == 0 {
			status = 200
		}
		if contentType == "" {
			contentType = "text/event-stream; charset=utf-8"
		}
		m.Headers(time.Millisecond, status, contentType, x.encoding)
	}
	end := x.end
	for _, f := range x.frames {
		m.Observe(ms(f.at).V, []byte(f.body))
		m.check(t)
		m.Snapshot(ms(f.at).V)
		m.check(t)
		end = max(end, f.at)
	}
	return m.Close(ms(end).V, x.cause)
}

// The chunks of chat.

func role(choice int) string {
	return fmt.Sprintf(`{"id":"c1","model":"m","choices":[{"index":%d,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, choice)
}

// chunk returns a chunk with that delta and what else stands in the choice.
func chunk(choice int, delta string, more ...string) string {
	return fmt.Sprintf(`{"choices":[{"index":%d,"delta":%s%s}]}`, choice, delta, members(more))
}

// counted returns a chunk with continuous usage.
func counted(choice, tokens int, delta string, more ...string) string {
	return fmt.Sprintf(`{"choices":[{"index":%d,"delta":%s%s}],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`,
		choice, delta, members(more), tokens)
}

// final returns the usage chunk.
func final(tokens int) string {
	return fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`, tokens)
}

func text(s string) string { return fmt.Sprintf(`{"content":%q}`, s) }

const (
	nothing    = `{}`
	emptyText  = `{"content":""}`
	thought    = `{"reasoning":"x"}`
	toolName   = `{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f"}}]}`
	stop       = `"finish_reason":"stop"`
	length     = `"finish_reason":"length"`
	oneLogprob = `"logprobs":{"content":[{}]}`
	done       = `[DONE]`
	anError    = `{"error":{"message":"m","type":"InternalServerError","code":500}}`
)

func members(more []string) string {
	var b strings.Builder
	for _, m := range more {
		b.WriteString(",")
		b.WriteString(m)
	}
	return b.String()
}

// The chunks of completions.

func completion(choice int, text string, more ...string) string {
	return fmt.Sprintf(`{"choices":[{"index":%d,"text":%q%s}]}`, choice, text, members(more))
}

// same fails where got is not want.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// tokens fails where the output tokens or their source are others.
func tokens(t *testing.T, r *Record, n int64, s Source) {
	t.Helper()
	same(t, "output tokens", r.OutputTokens, Some(n))
	same(t, "source", r.OutputSource, s)
}

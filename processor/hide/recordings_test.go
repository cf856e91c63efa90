package hide_test

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/hide"
)

const streams = "../../internal/testkit/testdata/streams"

var (
	both       = dialect.Asked{IncludeUsage: true, Continuous: true}
	unsaid     = dialect.Asked{IncludeUsage: true, Continuous: true, Unsaid: true}
	continuous = dialect.Asked{Continuous: true}
)

// body reads a recording: its whole body, and the dialect.
func body(t testing.TB, name string) (string, dialect.Dialect) {
	t.Helper()
	rec, err := recording.ReadFile(filepath.Join(streams, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range rec.Pieces {
		b.Write(p.Data)
	}
	return b.String(), dialect.ForPath(rec.Request.Path)
}

// hidden is what a client gets of a stream that comes in pieces of size bytes.
func hidden(d dialect.Dialect, asked dialect.Asked, stream string, size int) string {
	h := hide.New(d, asked, 0)
	var out []byte
	for rest := stream; rest != ""; {
		n := min(size, len(rest))
		piece := []byte(rest[:n])
		out = h.Write(out, piece)
		for i := range piece {
			piece[i] = '#'
		}
		rest = rest[n:]
	}
	return string(h.Close(out))
}

// everyCut holds hidden against want with the stream whole, in pieces of one
// size, and cut once at every place.
func everyCut(t *testing.T, d dialect.Dialect, asked dialect.Asked, stream, want string) {
	t.Helper()
	someCuts(t, d, asked, stream, want)
	for at := range len(stream) {
		cutAt(t, d, asked, stream, want, at)
	}
}

// someCuts is everyCut with some of the single cuts.
func someCuts(t *testing.T, d dialect.Dialect, asked dialect.Asked, stream, want string) {
	t.Helper()
	for _, size := range []int{len(stream) + 1, 1, 2, 3, 7, 100, 1000} {
		if got := hidden(d, asked, stream, size); got != want {
			t.Fatalf("pieces of %d:\n got %q\nwant %q", size, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(stream))))
	for range min(len(stream), 100) {
		cutAt(t, d, asked, stream, want, random.IntN(len(stream)))
	}
}

func cutAt(t *testing.T, d dialect.Dialect, asked dialect.Asked, stream, want string, at int) {
	t.Helper()
	h := hide.New(d, asked, 0)
	out := h.Write(nil, []byte(stream[:at]))
	out = h.Close(h.Write(out, []byte(stream[at:])))
	if string(out) != want {
		t.Fatalf("cut at %d:\n got %q\nwant %q", at, out, want)
	}
}

var (
	anyID      = regexp.MustCompile(`"id":"[^"]*"`)
	anyCreated = regexp.MustCompile(`"created":\d+`)
)

// alike leaves out what differs from one exchange to the next.
func alike(stream string) string {
	return anyCreated.ReplaceAllString(anyID.ReplaceAllString(stream, `"id":""`), `"created":0`)
}

// The same request was recorded with and without usage: what is left of the one
// is the other.
func TestRecordedPairs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		with, without string
		asked         dialect.Asked
	}{
		{"chat-continuous-usage", "chat-no-usage", both},
		{"chat-continuous-usage", "chat-no-usage", unsaid},
		{"chat-continuous-usage", "chat-usage", continuous},
		{"chat-usage", "chat-no-usage", both},
		{"chat-usage", "chat-usage", continuous},
		{"chat-no-usage", "chat-no-usage", both},
		{"forced-chat-no-usage", "chat-no-usage", both},
		{"comp-continuous-usage", "comp-no-usage", both},
		{"comp-continuous-usage", "comp-usage", continuous},
		{"comp-usage", "comp-no-usage", both},
		{"comp-no-usage", "comp-no-usage", both},
		{"forced-comp-no-usage", "comp-no-usage", both},
		{"interval-chat-continuous", "interval-chat-no-usage", both},
		{"interval-chat-continuous", "interval-chat-usage", continuous},
		{"interval-chat-usage", "interval-chat-no-usage", both},
		{"spec-chat-usage", "spec-chat-no-usage", both},
		{"metrics-chat-usage", "metrics-chat-no-usage", both},
	} {
		t.Run(tt.with+" as "+tt.without, func(t *testing.T) {
			t.Parallel()
			with, d := body(t, tt.with)
			without, _ := body(t, tt.without)
			everyCut(t, d, tt.asked, alike(with), alike(without))
		})
	}
}

var (
	lastEvent   = regexp.MustCompile(`data: \{[^\n]*"choices":\[\],"usage":\{[^\n]*\n\n`)
	usageMember = regexp.MustCompile(`,"usage":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}`)
	usageValue  = regexp.MustCompile(`"usage":\{[^{}]*"prompt_tokens_details":null\}`)
	fingerprint = regexp.MustCompile(`,"system_fingerprint":"[^"]*"`)
	finishEvent = regexp.MustCompile(`("finish_reason":"[^\n]*)\}\n`)
)

// without is what vLLM sends to one who does not ask, worked out with regular
// expressions from what it sends to one who does.
func without(stream string, d dialect.Dialect, asked dialect.Asked) string {
	last := lastEvent.FindString(stream)
	if asked.IncludeUsage {
		stream = strings.Replace(stream, last, "", 1)
	} else {
		stream = strings.Replace(stream, last, "LAST\n", 1)
	}
	if asked.Continuous {
		if d == dialect.Completions {
			stream = usageValue.ReplaceAllString(stream, `"usage":null`)
		}
		stream = usageMember.ReplaceAllString(stream, "")
	}
	if mark := fingerprint.FindString(last); mark != "" && asked.IncludeUsage {
		stream = finishEvent.ReplaceAllString(stream, "${1}"+mark+"}\n")
	}
	return strings.Replace(stream, "LAST\n", last, 1)
}

// Every vLLM recording of one choice, as if the usage in it was asked by us.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"chat-abort-continuous", "chat-bytes", "chat-bytes-logprobs", "chat-cached-prompt", "chat-continuous-usage",
		"chat-echo", "chat-json-schema", "chat-logprobs", "chat-long-600", "chat-reasoning", "chat-reasoning-only",
		"chat-reasoning-only-excluded", "chat-stop", "chat-token-ids", "chat-tool-auto", "chat-tool-named",
		"chat-tool-required", "chat-usage-1-token", "comp-continuous-usage", "comp-echo", "comp-logprobs", "comp-token-prompt",
		"engine-dies-midstream", "forced-chat-no-usage", "forced-comp-no-usage", "interval-chat-continuous",
		"interval-comp-logprobs", "server-killed-midstream", "stall-chat", "v012-chat-bytes", "v012-chat-echo",
		"v012-chat-reasoning", "v012-chat-usage", "v012-comp-continuous-usage", "v012-comp-usage",
		"v012-engine-dies-before-first-token",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, d := body(t, name)
			for _, asked := range []dialect.Asked{both, continuous, {}} {
				someCuts(t, d, asked, stream, without(stream, d, asked))
			}
		})
	}
}

// A server before 0.18 takes stream options that do not say for a yes, and then
// the usage at the end is the client's.
func TestUnsaidKeepsAnOldServersLastEvent(t *testing.T) {
	t.Parallel()
	stream, d := body(t, "v012-chat-usage")
	everyCut(t, d, unsaid, stream, stream)
	stream, d = body(t, "v012-comp-continuous-usage")
	everyCut(t, d, unsaid, stream, without(stream, d, continuous))
}

// What no asking brought stays: usage that transformers serve sends to all, and
// the null of those who send it to all.
func TestOthersKeepTheirOwn(t *testing.T) {
	t.Parallel()
	stream, d := body(t, "hf-chat-stream")
	everyCut(t, d, both, stream, stream)

	stream, d = body(t, "litellm-chat-usage")
	at := strings.Index(stream, `"choices":[{"index":0,"delta":{}}],"usage"`)
	from := strings.LastIndex(stream[:at], "data: ")
	want := stream[:from] + stream[at+strings.Index(stream[at:], "\n\n")+2:]
	everyCut(t, d, both, stream, want)
}

package sse_test

import (
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/sse"
)

func TestStreams(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	const usage = `{"choices":[],"usage":{"prompt_tokens":7,"total_tokens":17,"completion_tokens":10}}`
	tests := []struct {
		name       string
		max        int // 0: the default
		stream     string
		events     []string
		keepAlives int64
		overflows  int64
	}{
		{name: "F1 F2 F3 usage and end mark", stream: "data: " + usage + "\n\ndata: [DONE]\n\n",
			events: []string{"|" + usage, "|[DONE]"}},
		{name: "F4 no space", stream: "data:{\"choices\":[]}\n\n", events: []string{`|{"choices":[]}`}},
		{name: "F4 one space only is taken", stream: "data:  x\n\n", events: []string{"| x"}},
		{name: "F4 event without space", stream: "event:error\ndata:{}\n\n", events: []string{"error|{}"}},
		{name: "F5 CRLF", stream: "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", events: []string{"a|1", "|2"}},
		{name: "F5 CR", stream: "data: 1\r\rdata: 2\r\r", events: []string{"|1", "|2"}},
		{name: "F5 mixed", stream: "data: 1\n\r\ndata: 2\r\n\ndata: 3\r\ndata: 4\r\r\n\ndata: 5\n\r",
			events: []string{"|1", "|2", "|3\n4", "|5"}},
		{name: "F5 CR LF is one end", stream: "data: 1\r\ndata: 2\r\n\r\n", events: []string{"|1\n2"}},
		{name: "F6 byte order mark", stream: "\xEF\xBB\xBFdata: 1\n\n", events: []string{"|1"}},
		{name: "F6 only one", stream: "\xEF\xBB\xBF\xEF\xBB\xBFdata: 1\n\n"},
		{name: "F6 not later", stream: "data: 1\n\n\xEF\xBB\xBFdata: 2\n\n", events: []string{"|1"}},
		{name: "F6 half a mark", stream: "\xEF\xBBdata: 1\n\ndata: 2\n\n", events: []string{"|2"}},
		{name: "F6 half a mark is a line", stream: "data: 0\n\xEF\n\n", events: []string{"|0"}},
		{name: "F6 nothing but a mark", stream: "\xEF\xBB\xBF"},
		{name: "F7 Unicode line ends", stream: "data: a\u2028b\u2029c\u0085d\n\n", events: []string{"|a\u2028b\u2029c\u0085d"}},
		{name: "F8 several data lines", stream: "data: {\"a\":\ndata: 1}\n\n", events: []string{"|{\"a\":\n1}"}},
		{name: "F8 with others between", stream: "data: a\n: note\nid: 7\nevent: e\ndata: b\nretry: 5\n\n",
			events: []string{"e|a\nb"}, keepAlives: 1},
		{name: "F8 the last type wins", stream: "event: a\nevent: b\ndata: 1\n\ndata: 2\n\n", events: []string{"b|1", "|2"}},
		{name: "F8 empty lines of data", stream: "data\ndata:\ndata: \n\n", events: []string{"|\n\n"}},
		{name: "F9 keep-alives", stream: ": ping - 2026-07-26\n\n:\n\n\n\nevent: ping\n\ndata:\n\ndata: \n\ndata\n\ndata: 1\n\n",
			events: []string{"|1"}, keepAlives: 2},
		{name: "F9 a type does not outlive its event", stream: "event: ping\n\ndata: 1\n\n", events: []string{"|1"}},
		{name: "F9 comments in one block", stream: ":a\n:b\r\n:c\r\r", keepAlives: 3},
		{name: "F10 data that looks like a comment", stream: "data: : OPENROUTER PROCESSING\n\n",
			events: []string{"|: OPENROUTER PROCESSING"}},
		{name: "F11 64 KiB and one", stream: "data: " + long(65531) + "\n\n", events: []string{"|" + long(65531)}},
		{name: "F11 exactly the maximum", max: 100, stream: "data: " + long(94) + "\n\ndata: 2\n\n",
			events: []string{"|" + long(94), "|2"}},
		{name: "F11 one above", max: 100, stream: "data: " + long(95) + "\n\ndata: 2\n\n",
			events: []string{"|2"}, overflows: 1},
		{name: "F11 lines add up", max: 20, stream: "event: abc\ndata: abcd\n\nevent: abc\ndata: abcde\n\n",
			events: []string{"abc|abcd"}, overflows: 1},
		{name: "F11 comments and other fields don't", max: 20,
			stream: ": " + long(50) + "\nid: " + long(50) + "\ndatax: " + long(50) + "\ndata: 1\n\n",
			events: []string{"|1"}, keepAlives: 1},
		{name: "F11 the rest of its block goes with it", max: 20,
			stream: "data: " + long(30) + "\nevent: e\ndata: 1\n:c\ndata: 2\r\n\r\ndata: 3\n\n",
			events: []string{"|3"}, keepAlives: 1, overflows: 1},
		{name: "F11 once for each event", max: 10, stream: "data: 12345\ndata: 12345\n\ndata: 12345\n\n", overflows: 2},
		{name: "F11 a name is not an overflow", max: 1, stream: "datum\n\n"},
		{name: "F12 found again in the same frame", max: 100,
			stream: "data: " + long(200) + "\r\n\r\ndata: " + usage[:80] + "\n\n",
			events: []string{"|" + usage[:80]}, overflows: 1},
		{name: "F13 characters cut", stream: "data: \u4f60\U0001F600\n\n", events: []string{"|\u4f60\U0001F600"}},
		{name: "F14 marks inside content",
			stream: `data: {"c":": [\n\ndata: [DONE]","d":"\"usage\""}` + "\n\n",
			events: []string{`|{"c":": [\n\ndata: [DONE]","d":"\"usage\""}`}},
		{name: "end in a line", stream: "data: 1\n\nevent: e\ndata: [DO", events: []string{"|1", "end:e|[DO"}},
		{name: "end after a line", stream: "data: [DONE]\n", events: []string{"end:|[DONE]"}},
		{name: "end after CR of a line", stream: "data: [DONE]\r", events: []string{"end:|[DONE]"}},
		{name: "end after CR of a blank line", stream: "data: [DONE]\n\r", events: []string{"|[DONE]"}},
		{name: "end in a comment", stream: "data: 1\n\n: keep", events: []string{"|1"}},
		{name: "end in a name", stream: "data: 1\n\ndat", events: []string{"|1"}},
		{name: "end without data", stream: "event: e\ndata"},
		{name: "end in an overflow", max: 10, stream: "data: 12345", overflows: 1},
		{name: "nothing", stream: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := result{tt.events, tt.keepAlives, tt.overflows}
			checkEveryCut(t, tt.max, []byte(tt.stream), want)
			maxEvent := tt.max
			if maxEvent == 0 {
				maxEvent = sse.DefaultMaxEvent
			}
			if ref := reference(maxEvent, []byte(tt.stream)); ref.String() != want.String() {
				t.Errorf("the reference is wrong:\n got %s\nwant %s", ref, want)
			}
		})
	}
}

func TestDefaultMaximum(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", sse.DefaultMaxEvent-len("data: "))
	for n, want := range map[string]result{
		"data: " + value + "\n\ndata: 2\n\n":  {events: []string{"|" + value, "|2"}},
		"data: " + value + "y\n\ndata: 2\n\n": {events: []string{"|2"}, overflows: 1},
	} {
		for _, size := range []int{1 << 22, 16000, 1} {
			var pieces [][]byte
			for b := []byte(n); len(b) > 0; {
				k := min(size, len(b))
				pieces, b = append(pieces, b[:k]), b[k:]
			}
			if got := parse(0, pieces...); got.String() != want.String() {
				t.Errorf("pieces of %d: %d events, %d overflows, want %d, %d", size,
					len(got.events), got.overflows, len(want.events), want.overflows)
			}
		}
	}
}

// The event is there with its last byte, not with the byte after: a blank line
// that CR ends is complete, whether or not LF follows.
func TestEventIsNotHeldBack(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r", "data: 1\n\r"} {
		p := sse.New(0)
		p.Push([]byte(stream[:len(stream)-1]))
		if e, ok := p.Next(); ok {
			t.Errorf("%q: event %q before its last byte", stream, e.Data)
		}
		p.Push([]byte(stream[len(stream)-1:]))
		if _, ok := p.Next(); !ok {
			t.Errorf("%q: no event at its last byte", stream)
		}
	}
}

func TestWholeEventIsNotCopied(t *testing.T) {
	t.Parallel()
	frame := []byte("event: e\ndata: 123\n\n")
	p := sse.New(0)
	p.Push(frame)
	e, ok := p.Next()
	if !ok || &e.Data[0] != &frame[15] || &e.Type[0] != &frame[7] {
		t.Errorf("event %q %q is not a part of its frame", e.Type, e.Data)
	}
}

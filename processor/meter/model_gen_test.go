package meter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// The generator of exchanges, from a seed: what the meter gets as bytes, the
// model gets as what it means. Left out is what definitions.md does not tell, or
// what has tests of its own: usage beside several choices at once, echo of
// completions, cumulative token ids, prompts of messages that shrink, line ends
// other than LF, content codings that can be taken off, more than 512 instants,
// and gaps that are a stall or not by less than the meter's median is exact.

// teller makes up one exchange.
type teller struct {
	*rand.Rand
	x     *story
	names bool // events have their name beside the one in the data

	choices                 int
	running                 bool // continuous usage
	idsShare, logprobsShare int  // percent of the events that have them
	counted                 []int64
	nextID                  int
	calls                   int
	began, cached           bool
	out                     strings.Builder
}

const modelPaths = "/v1/chat/completions /v1/completions /v1/responses /v1/messages /v1/else /v1/chat/completions?key=x"

func tell(seed uint64) *story {
	g := &teller{Rand: rand.New(rand.NewPCG(seed, 4)), x: &story{}}
	x := g.x
	paths := strings.Fields(modelPaths)
	x.start = Start{At: time.Unix(1e9, 0), Source: StartEnvoy, RequestID: fmt.Sprint(seed), Method: "POST", Path: paths[0]}
	if !g.percent(55) {
		x.start.Path = paths[g.IntN(len(paths))]
	}
	if g.percent(2) {
		x.start.Method = "OPTIONS"
	}
	x.options = Options{MaxChunks: 1 + g.IntN(40), GapBounds: []time.Duration{time.Millisecond, 7 * time.Millisecond, 50 * time.Millisecond, time.Second}}
	g.ask()
	if g.percent(20) {
		x.routed = Route{Pool: "p", Endpoint: "e", Attempts: 1 + g.IntN(2)}
	}
	if g.percent(20) {
		x.sent = Some(int64(g.IntN(99)))
	}
	g.answerHead()
	if x.head {
		g.tellBody()
	}
	x.cause = CauseEnd
	if g.percent(50) {
		x.cause = Cause(g.IntN(int(CauseRejected) + 1))
	}
	g.cut()
	return x
}

func (g *teller) percent(n int) bool { return g.IntN(100) < n }

func (g *teller) ask() {
	if g.percent(10) {
		return
	}
	a := dialect.Request{Dialect: dialect.ForPath(g.x.start.Path), N: -1, MaxTokens: 9, Stream: g.percent(80)}
	if g.percent(80) {
		a.Model, a.HasModel = "asked", true
	}
	if g.percent(25) && a.Dialect != dialect.Completions {
		a.Echo, a.NoGenerationPrompt = true, g.percent(50)
		a.LastRole = []string{"user", "assistant"}[g.IntN(2)]
	}
	g.x.asked = a
}

func (g *teller) answerHead() {
	x := g.x
	if g.percent(3) {
		return
	}
	x.head, x.headAt, x.status = true, g.step(), 200
	if g.percent(15) {
		x.status = []int{201, 204, 307, 400, 404, 429, 500, 503}[g.IntN(8)]
	}
	x.contentType, x.stream = "text/event-stream; charset=utf-8", true
	switch g.IntN(20) {
	case 0:
		x.contentType = "Text/Event-Stream"
	case 1, 2:
		x.contentType, x.stream = "application/json", false
	case 3:
		x.contentType, x.stream = "text/html", false
	}
	if g.percent(2) {
		x.coding = "x-unheard-of"
	}
}

// step is a time, in whole 100 µs.
func (g *teller) step() time.Duration { return time.Duration(g.IntN(300)) * 100 * time.Microsecond }

// tellBody makes up the body.
func (g *teller) tellBody() {
	if !g.x.stream {
		g.tellAnswer()
		return
	}
	g.names = g.percent(50)
	g.choices = 1
	d := dialect.ForPath(g.x.start.Path)
	if (d == dialect.Chat || d == dialect.Completions) && g.percent(35) {
		g.choices = 2 + g.IntN(2)
	}
	g.counted = make([]int64, g.choices)
	g.running = g.percent(35)
	shares := []int{0, 0, 0, 100, 100, 80}
	g.idsShare, g.logprobsShare = shares[g.IntN(6)], shares[g.IntN(6)]
	if g.percent(50) {
		g.logprobsShare = 0
	}
	for range g.IntN(40) {
		switch p := g.IntN(100); {
		case p < 5:
			g.comment()
		case p < 7:
			g.send("", []string{`{"choices":[`, "<html>", "x"}[g.IntN(3)], said{unreadable: true})
		default:
			g.speak(d)
		}
	}
	if g.percent(60) {
		g.end(d)
	}
}

func (g *teller) comment() {
	g.out.WriteString(": keep-alive\n\n")
	g.x.events = append(g.x.events, said{comment: true, end: g.out.Len() - 1})
}

// send puts an event into the body.
func (g *teller) send(name, data string, e said) {
	if name != "" {
		fmt.Fprintf(&g.out, "event: %s\n", name)
	}
	fmt.Fprintf(&g.out, "data: %s", data)
	e.size, e.whole = len(data), g.out.Len()
	g.out.WriteString("\n\n")
	e.end = g.out.Len()
	g.x.events = append(g.x.events, e)
}

// speak sends an event of the dialect.
func (g *teller) speak(d dialect.Dialect) {
	switch d {
	case dialect.Responses:
		g.speakResponses()
	case dialect.Messages:
		g.speakMessages()
	case dialect.Completions:
		g.speakOpenAI(false)
	default:
		g.speakOpenAI(true)
	}
}

// end sends the usual end, or a part of it.
func (g *teller) end(d dialect.Dialect) {
	switch d {
	case dialect.Responses:
		g.completed()
	case dialect.Messages:
		g.messageDelta()
		if g.percent(80) {
			g.typed("message_stop", "", said{done: true})
		}
	default:
		for choice := range g.choices {
			if g.percent(85) {
				g.chunk(d != dialect.Completions, part{choice: choice, finish: g.reason()})
			}
		}
		if g.percent(50) {
			g.usageChunk(d != dialect.Completions)
		}
		if g.percent(80) {
			g.send("", "[DONE]", said{done: true})
		}
	}
}

func (g *teller) reason() string {
	return []string{"stop", "length", "tool_calls", "other"}[g.IntN(4)]
}

// cut cuts the body into frames, breaks it off perhaps, and gives each a time.
func (g *teller) cut() {
	x := g.x
	x.body = []byte(g.out.String())
	total := len(x.body)
	if total > 0 && g.percent(25) {
		// Not within a comment: whether half of one counts is not told.
		i := g.IntN(len(x.events) + 1)
		switch {
		case len(x.events) == 0:
			total = g.IntN(total + 1)
		case i > 0:
			total = x.events[i-1].end
		default:
			total = 0
		}
		if i < len(x.events) && !x.events[i].comment {
			total += g.IntN(x.events[i].end - total)
		}
		if i < len(x.events) && g.percent(30) && !x.events[i].comment {
			total = x.events[i].whole + g.IntN(2)
		}
	}
	byEvent := g.percent(40)
	for upTo := 0; upTo < total; {
		next := upTo + 1 + g.IntN(400)
		if byEvent {
			for _, e := range x.events {
				if e.end > upTo {
					next = e.end
					break
				}
			}
		}
		upTo = min(next, total)
		x.cuts = append(x.cuts, cut{upTo: upTo})
	}
	g.time(g.IntN(5))
	for range 20 {
		if _, unsure := x.look(len(x.cuts), true).stalls(); !unsure {
			return
		}
		g.time(g.IntN(5))
	}
	g.time(0)
}

// time gives the frames their times: fast, slow, or many at once.
func (g *teller) time(pace int) {
	at := g.x.headAt
	for i := range g.x.cuts {
		switch {
		case pace == 0: // too fast for any stall
			at += time.Duration(g.IntN(20)) * 100 * time.Microsecond
		case g.percent(20):
		case pace == 1, g.percent(60):
			at += g.step()
		case pace == 2:
			at += 20 * g.step()
		case pace == 3:
			at += time.Duration(70+g.IntN(60)) * time.Millisecond
		case g.percent(30):
			at += time.Duration(490+5*g.IntN(5)) * time.Millisecond
		default:
			at += 100 * g.step()
		}
		g.x.cuts[i].at = at
	}
	g.x.end = at + g.step()
}

package meter

import (
	"fmt"
	"strings"

	"github.com/inferspan/inferspan/processor/dialect"
)

// The events of the generator, as the bytes of each dialect.

// speakOpenAI sends an event of chat, or of completions.
func (g *teller) speakOpenAI(chat bool) {
	p := part{choice: g.IntN(g.choices)}
	switch n := g.IntN(100); {
	case n < 4:
		g.usageChunk(chat)
		return
	case n < 6:
		g.openAIError()
		return
	case n < 7:
		g.send("", "[DONE]", said{done: true})
		return
	case n < 12:
		p.role, p.empty = chat, true
	case n < 20:
		p.reasoning = chat
	case n < 26:
		p.tools = chat
	case n < 32:
		p.empty = true
	case n < 40:
		// Nothing to see.
	case n < 45:
		p.reasoning, p.tools, p.content = chat && g.percent(50), chat && g.percent(50), true
		p.role = chat && g.percent(50)
	default:
		p.content = true
	}
	if g.percent(8) {
		p.finish = g.reason()
	}
	if chat && !g.running && g.percent(5) && g.choices > 1 {
		g.chunk(chat, p, part{choice: (p.choice + 1) % g.choices, content: true})
		return
	}
	g.chunk(chat, p)
}

func (g *teller) openAIError() {
	switch g.IntN(3) {
	case 0:
		g.send("", `{"error":{"message":"m","type":"Overloaded","code":500}}`, said{failed: true, errorType: "Overloaded", tells: dialect.Chat})
	case 1:
		g.send("", `{"error":{"message":"m","code":504}}`, said{failed: true, errorType: "504", tells: dialect.Chat})
	default:
		g.send("", `{"error":"secret"}`, said{failed: true, tells: dialect.Chat})
	}
}

// chunk sends one of chat or completions with these choices; running usage, ids
// and log probabilities as the stream has them.
func (g *teller) chunk(chat bool, parts ...part) {
	e := said{tells: dialect.Completions}
	if chat {
		e.tells = dialect.Chat
	}
	var list []string
	for i := range parts {
		p := &parts[i]
		speaks := p.shows() || g.percent(20)
		if speaks && g.percent(g.idsShare) {
			p.ids = 1 + g.IntN(3)
		}
		if speaks && g.percent(g.logprobsShare) {
			p.logprobs = 1 + g.IntN(3)
		}
		list = append(list, g.choice(chat, *p))
	}
	e.parts = parts
	head := g.top(&e, chat)
	tail := ""
	switch {
	case len(parts) == 1 && (g.running && g.percent(95) || !g.running && g.percent(4)):
		c := &g.counted[parts[0].choice]
		if *c += int64(g.IntN(4)); g.percent(3) {
			*c = int64(g.IntN(3))
		}
		e.usage = &counts{prompt: Some(int64(5 + g.IntN(2))), completion: Some(*c)}
		tail = `,"usage":` + usageJSON(e.usage)
	case g.percent(10):
		tail = `,"usage":null`
	}
	if g.percent(2) {
		// Beside choices it is one choice's trouble.
		tail += `,"error":{"type":"Beside"}`
	}
	g.send("", head+`"choices":[`+strings.Join(list, ",")+"]"+tail+"}", e)
}

// top begins an event's object.
func (g *teller) top(e *said, chat bool) string {
	object := "text_completion"
	if chat {
		object = "chat.completion.chunk"
	}
	if g.percent(80) {
		e.id, e.model = "c1", "m"
		return fmt.Sprintf(`{"id":"c1","object":%q,"model":"m",`, object)
	}
	return fmt.Sprintf(`{"object":%q,`, object)
}

// choice is a choice's object. Ids never repeat, so that no list begins with the
// one before.
func (g *teller) choice(chat bool, p part) string {
	var members []string
	show := func(on bool, member string) {
		if on {
			members = append(members, member)
		}
	}
	show(p.role, `"role":"assistant"`)
	show(p.reasoning, []string{`"reasoning":"r"`, `"reasoning_content":"r"`}[g.IntN(2)])
	if chat {
		show(p.content, []string{`"content":"aü"`, `"refusal":"no"`}[g.IntN(2)])
		show(p.empty, `"content":""`)
		show(p.tools, []string{`"tool_calls":[{"index":0,"id":"t"}]`, `"tool_calls":[{"index":0,"function":{"arguments":"{"}}]`}[g.IntN(2)])
	}
	text := strings.Join(members, ",")
	if chat {
		text = `"delta":{` + text + "}"
	} else {
		text = `"text":""`
		if p.content {
			text = `"text":"a"`
		} else if !p.empty {
			text = `"text":null`
		}
	}
	finish := "null"
	if p.finish != "" {
		finish = `"` + p.finish + `"`
	}
	out := fmt.Sprintf(`{"index":%d,%s,"finish_reason":%s`, p.choice, text, finish)
	if p.logprobs > 0 && chat {
		out += `,"logprobs":{"content":[` + strings.TrimSuffix(strings.Repeat(`{"token":"a"},`, p.logprobs), ",") + `]}`
	} else if p.logprobs > 0 {
		out += `,"logprobs":{"tokens":[` + strings.TrimSuffix(strings.Repeat(`"a",`, p.logprobs), ",") + `]}`
	}
	if p.ids > 0 {
		var ids []string
		for range p.ids {
			g.nextID++
			ids = append(ids, fmt.Sprint(g.nextID))
		}
		out += `,"token_ids":[` + strings.Join(ids, ",") + "]"
	}
	return out + "}"
}

// usageChunk sends usage without choices.
func (g *teller) usageChunk(chat bool) {
	e := said{tells: dialect.Completions, usage: g.final()}
	if chat {
		e.tells = dialect.Chat
	}
	head, tail := g.top(&e, chat), ""
	if g.percent(20) {
		e.queueMS, tail = Some(1.5), `,"metrics":{"queue_time_ms":1.5}`
	}
	g.send("", head+`"choices":[],"usage":`+usageJSON(e.usage)+tail+"}", e)
}

// final makes up what final usage says.
func (g *teller) final() *counts {
	u := &counts{prompt: Some(int64(7)), completion: Some(int64(g.IntN(30))), final: true}
	if g.percent(5) {
		u.completion = Opt[int64]{}
	}
	if g.percent(50) {
		u.cached = Some(int64(g.IntN(3)))
	}
	if g.percent(50) {
		u.reasoning = Some(int64(g.IntN(3)))
	}
	return u
}

func number(n Opt[int64]) string {
	if !n.OK {
		return "null"
	}
	return fmt.Sprint(n.V)
}

func usageJSON(u *counts) string {
	return fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s,"prompt_tokens_details":{"cached_tokens":%s},"completion_tokens_details":{"reasoning_tokens":%s}}`,
		number(u.prompt), number(u.completion), number(u.cached), number(u.reasoning))
}

// typed sends an event of a dialect whose events have types.
func (g *teller) typed(kind, members string, e said) {
	if members != "" {
		members = "," + members
	}
	name := ""
	if g.names {
		name = kind
	}
	g.send(name, fmt.Sprintf(`{"type":%q%s}`, kind, members), e)
}

// speakResponses sends an event of responses.
func (g *teller) speakResponses() {
	one := func(p part) said { return said{parts: []part{p}} }
	switch n := g.IntN(100); {
	case n < 8:
		e := one(part{})
		e.id, e.model = "r1", "m"
		g.typed("response.created", `"response":{"id":"r1","model":"m","status":"in_progress"}`, e)
	case n < 14:
		g.typed("response.output_text.done", `"text":"abc"`, one(part{}))
	case n < 20:
		g.typed("response.output_text.delta", `"delta":""`, one(part{empty: true}))
	case n < 32:
		g.typed("response.reasoning_text.delta", `"delta":"r"`, one(part{reasoning: true}))
	case n < 38:
		g.calls++
		g.typed("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":"function_call","name":"f"}`, g.calls), one(part{tools: true, call: g.calls}))
	case n < 46:
		call := g.calls + g.IntN(2)
		g.calls = call
		g.typed("response.function_call_arguments.delta", fmt.Sprintf(`"output_index":%d,"delta":"{"`, call), one(part{tools: true, call: call}))
	case n < 54:
		call := g.calls + g.IntN(2)
		g.calls = call
		g.typed("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":{"type":"function_call","name":"f"}`, call), one(part{tools: true, call: call, ended: true}))
	case n < 55:
		g.typed("response.failed", `"response":{"status":"failed","error":{"code":"server_error"}}`, said{failed: true, errorType: "server_error", parts: []part{{finish: "failed"}}})
	case n < 57:
		g.typed("error", `"code":"c7"`, said{failed: true, errorType: "c7"})
	case n < 59:
		g.completed()
	default:
		p := part{content: true}
		if g.percent(g.logprobsShare) {
			p.logprobs = 1 + g.IntN(2)
		}
		g.typed("response.output_text.delta", `"delta":"a","logprobs":[`+strings.TrimSuffix(strings.Repeat("{},", p.logprobs), ",")+"]", one(p))
	}
}

func (g *teller) completed() {
	u := g.final()
	usage := fmt.Sprintf(`"usage":{"input_tokens":%s,"output_tokens":%s,"input_tokens_details":{"cached_tokens":%s},"output_tokens_details":{"reasoning_tokens":%s}}`,
		number(u.prompt), number(u.completion), number(u.cached), number(u.reasoning))
	if g.percent(70) {
		g.typed("response.completed", `"response":{"status":"completed",`+usage+"}", said{done: true, usage: u, parts: []part{{finish: "completed"}}})
		return
	}
	g.typed("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+usage+"}",
		said{done: true, usage: u, parts: []part{{finish: "max_output_tokens"}}})
}

// speakMessages sends an event of messages; the first is the message's start.
func (g *teller) speakMessages() {
	one := func(p part) said { return said{parts: []part{p}} }
	if !g.began {
		g.began = true
		e := one(part{})
		e.id, e.model, e.usage = "msg1", "m", &counts{prompt: Some[int64](7)}
		g.typed("message_start", `"message":{"id":"msg1","model":"m","content":[],"usage":{"input_tokens":7,"output_tokens":3}}`, e)
		return
	}
	switch n := g.IntN(100); {
	case n < 6:
		g.typed("ping", "", said{})
	case n < 12:
		g.typed("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`, one(part{}))
	case n < 18:
		g.typed("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"t","name":"f"}`, one(part{tools: true}))
	case n < 24:
		g.typed("content_block_delta", `"index":0,"delta":{"type":"input_json_delta","partial_json":"{"}`, one(part{tools: true}))
	case n < 36:
		g.typed("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"t"}`, one(part{reasoning: true}))
	case n < 42:
		g.typed("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"s"}`, one(part{}))
	case n < 46:
		g.typed("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":""}`, one(part{empty: true}))
	case n < 52:
		g.typed("content_block_stop", `"index":0`, one(part{}))
	case n < 54:
		g.messageDelta()
	case n < 56:
		g.typed("error", `"error":{"type":"overloaded_error","message":"m"}`, said{failed: true, errorType: "overloaded_error"})
	default:
		g.typed("content_block_delta", `"index":1,"delta":{"type":"text_delta","text":"a"}`, one(part{content: true}))
	}
}

func (g *teller) messageDelta() {
	u := &counts{completion: Some(int64(g.IntN(30))), final: true}
	usage := fmt.Sprintf(`"output_tokens":%d`, u.completion.V)
	if !g.cached && g.percent(50) {
		g.cached = true
		u.prompt, u.cached = Some[int64](7), Some[int64](3)
		usage += `,"input_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":2`
	}
	finish := []string{"end_turn", "max_tokens"}[g.IntN(2)]
	g.typed("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q},"usage":{%s}`, finish, usage), said{usage: u, parts: []part{{finish: finish}}})
}

// tellAnswer makes up a body that is no stream.
func (g *teller) tellAnswer() {
	d := dialect.ForPath(g.x.start.Path)
	switch n := g.IntN(10); {
	case n < 2:
		g.out.WriteString("<p>x</p>")
	case n < 3:
		g.out.WriteString(`{"a":1}`)
	case n < 5:
		g.out.WriteString(errorJSON)
		g.x.answer = &said{failed: true, errorType: "NotFoundError"}
	case n < 6:
	case d == dialect.Chat || d == dialect.Completions:
		u := g.final()
		g.x.answer = &said{id: "c1", model: "m", usage: u, parts: []part{{finish: "stop"}, {choice: 1, finish: "length"}}}
		fmt.Fprintf(&g.out, `{"id":"c1","model":"m","choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason":"length"}],"usage":%s}`, usageJSON(u))
	}
}

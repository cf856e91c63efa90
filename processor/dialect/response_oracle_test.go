package dialect

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// oracle reads an event with encoding/json, whole. It is not ok where the event is no valid object, or one that the two may read in
// different ways: with a name twice, or nested too deep.
func oracle(d Dialect, eventType string, data []byte) (f Facts, ok bool) {
	if !json.Valid(data) || !plain(data) {
		return f, false
	}
	top, isObject := decode(data).(map[string]any)
	if !isObject {
		return f, false
	}
	switch d {
	case Responses, Messages:
		kind := eventType
		if k := text(top["type"]); len(k) > maxScalar {
			return f, false
		} else if len(k) > 0 {
			kind = string(k)
		}
		if d == Responses {
			f = oracleResponses(kind, top)
		} else {
			f = oracleMessages(kind, top)
		}
	default:
		f = oracleOpenAI(d, top)
	}
	f.Error.Set = f.Error.Set || eventType == typeError
	return f, true
}

// oracleOpenAI reads an event of the dialects that are made after chat.
func oracleOpenAI(d Dialect, top map[string]any) (f Facts) {
	f.ID, f.Model = text(top["id"]), text(top["model"])
	if d == Generate {
		f.ID = text(top["request_id"])
	}
	list, _ := top["choices"].([]any)
	for _, e := range list {
		c, readable := oracleChoice(d, e)
		if !readable || len(f.Choices) == MaxChoices {
			f.Unread++
			continue
		}
		f.Choices = append(f.Choices, c)
	}
	if u, is := top["usage"].(map[string]any); is {
		f.Usage = Usage{
			Present:    true,
			Prompt:     count(u["prompt_tokens"]),
			Completion: count(u["completion_tokens"]),
			Cached:     count(inside(u["prompt_tokens_details"], "cached_tokens")),
			Reasoning:  count(inside(u["completion_tokens_details"], "reasoning_tokens")),
		}
	}
	f.Metrics = oracleMetrics(top["metrics"])
	if len(f.Choices) == 0 {
		f.Error = oracleError(top)
	}
	return f
}

func oracleMetrics(v any) Metrics {
	m, is := v.(map[string]any)
	if !is {
		return Metrics{}
	}
	speculative, there := m["speculative_decoding"]
	return Metrics{
		Present:             true,
		TimeToFirstTokenMS:  measure(m["time_to_first_token_ms"]),
		GenerationTimeMS:    measure(m["generation_time_ms"]),
		QueueTimeMS:         measure(m["queue_time_ms"]),
		MeanITLMS:           measure(m["mean_itl_ms"]),
		TokensPerSecond:     measure(m["tokens_per_second"]),
		SpeculativeDecoding: objectText(speculative, there),
	}
}

// objectText is an object, or null, in one form of JSON; nil for all else.
func objectText(v any, there bool) []byte {
	if _, is := v.(map[string]any); !is && (v != nil || !there) {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func oracleError(top map[string]any) Error {
	if e := oracleFailure(top["error"]); e.Set {
		return e
	}
	switch {
	case top["type"] == typeError:
		return Error{Set: true, Code: scalarText(top["code"])}
	case top["object"] == typeError:
		return Error{Set: true, Type: text(top["type"]), Code: scalarText(top["code"])}
	}
	return Error{}
}

// oracleFailure reads an error's value.
func oracleFailure(v any) Error {
	switch e := v.(type) {
	case map[string]any:
		return Error{Set: true, Type: text(e["type"]), Code: scalarText(e["code"])}
	case string:
		return Error{Set: e != "" && e != "false"}
	case json.Number:
		return Error{Set: true}
	case bool:
		return Error{Set: e}
	}
	return Error{}
}

func oracleChoice(d Dialect, e any) (c Choice, readable bool) {
	o, isObject := e.(map[string]any)
	if !isObject || d == Pooling {
		return c, false
	}
	if i := o["index"]; i != nil {
		n := count(i)
		if !n.OK || n.N >= MaxChoices {
			return c, false
		}
		c.Index = int(n.N)
	}
	c.Finish = text(o["finish_reason"])
	c.IDs = length(o["token_ids"])
	if d == Completions {
		if s, is := o["text"].(string); is {
			c.EmptyText = s == ""
			if s != "" {
				c.Visible = Content
			}
		}
		if p, is := o["prompt_token_ids"].([]any); is {
			c.PromptIDs = Count{N: int64(len(p)), OK: true}
		}
		c.Logprobs = length(inside(o["logprobs"], "tokens"))
		return c, true
	}
	c.Logprobs = length(inside(o["logprobs"], "content")) + length(inside(o["logprobs"], "refusal"))
	if d == Generate {
		if filled(o["text"]) {
			c.Visible |= Content
		}
		if c.IDs > 0 {
			c.Visible |= Token
		}
		return c, true
	}
	delta, is := o["delta"].(map[string]any)
	if !is {
		delta, _ = o["message"].(map[string]any)
	}
	c.Role = filled(delta["role"]) && d == Chat
	if s, is := delta["content"].(string); is {
		c.EmptyText = s == ""
	}
	if filled(delta["reasoning"]) || filled(delta["reasoning_content"]) {
		c.Visible |= Reasoning
	}
	if filled(delta["content"]) || length(delta["content"]) > 0 || filled(delta["refusal"]) {
		c.Visible |= Content
	}
	tools, _ := delta["tool_calls"].([]any)
	for _, tool := range tools {
		if filled(inside(tool, "id")) || oracleFunction(inside(tool, "function")) {
			c.Visible |= Tool
		}
	}
	if oracleFunction(delta["function_call"]) {
		c.Visible |= Tool
	}
	return c, true
}

func oracleFunction(f any) bool {
	_, isObject := inside(f, "arguments").(map[string]any)
	return filled(inside(f, "name")) || filled(inside(f, "arguments")) || isObject
}

// plain tells whether no object has a name twice, or both a delta and a message,
// and nothing nests deeper than is read.
func plain(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil for an array
		value bool            // a value comes next, not a name
	}
	var stack []level
	for {
		token, err := d.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		top := len(stack) - 1
		name := top >= 0 && stack[top].names != nil && !stack[top].value
		if top >= 0 {
			stack[top].value = name
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				stack = append(stack, level{names: map[string]bool{}})
			case '[':
				stack = append(stack, level{})
			default:
				stack = stack[:top]
				if top > 0 {
					stack[top-1].value = false
				}
			}
		case string:
			if !name {
				break
			}
			names := stack[top].names
			if names[v] || v == "delta" && names["message"] || v == "message" && names["delta"] {
				return false
			}
			names[v] = true
		}
		if len(stack) > maxDepth {
			return false
		}
	}
}

func decode(data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

func inside(o any, name string) any {
	m, _ := o.(map[string]any)
	return m[name]
}

func filled(v any) bool { s, _ := v.(string); return s != "" }

func length(v any) int { list, _ := v.([]any); return len(list) }

func text(v any) Text {
	if s, is := v.(string); is {
		return Text(s)
	}
	return nil
}

func scalarText(v any) Text {
	switch v := v.(type) {
	case string:
		return Text(v)
	case json.Number:
		return Text(v.String())
	case bool:
		return Text(strconv.FormatBool(v))
	}
	return nil
}

func count(v any) Count { return slowNumber(scalarText(v)) }

func measure(v any) Float {
	f, ok := parseFloat(scalarText(v))
	return Float{V: f, OK: ok}
}

// decoded returns f with its texts as the oracle has them.
func decoded(f *Facts) Facts {
	const all = 1 << 20
	g := *f
	g.scan, g.forms = scan{}, forms{}
	for _, t := range []*Text{&g.ID, &g.Model, &g.Error.Type, &g.Error.Code} {
		if *t != nil {
			*t = Text(t.Decode(all))
		}
	}
	if m := g.Metrics.SpeculativeDecoding; m != nil {
		g.Metrics.SpeculativeDecoding = objectText(decode(m), true)
	}
	g.Choices = nil
	for _, c := range f.Choices {
		if c.Finish != nil {
			c.Finish = Text(c.Finish.Decode(all))
		}
		c.IDList = nil
		g.Choices = append(g.Choices, c)
	}
	return g
}

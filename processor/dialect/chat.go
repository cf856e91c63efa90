package dialect

// chat is /v1/chat/completions.
var chat = openAI{choice: chatChoice}

// chatChoice reads one choice: of a chunk its delta, of
// a whole answer its message.
func chatChoice(s *scan, c *Choice) {
	s.enter('{')
	for s.more('}') {
		switch string(s.key()) {
		case "index":
			c.Index = s.index()
		case "delta", "message":
			readDelta(s, c)
		case "logprobs":
			c.Logprobs = chatLogprobs(s)
		case "finish_reason":
			c.Finish = s.str()
		case "token_ids":
			s.readIDs(c)
		default:
			s.skip()
		}
	}
}

// readDelta reads what a chunk adds to the message.
func readDelta(s *scan, c *Choice) {
	if !s.enter('{') {
		s.skip()
		return
	}
	// Reasoning comes by one of two names; vLLM 0.12 to 0.15 sends it by both.
	var role, content, empty, refusal, reasoning, older, tools, function bool
	for s.more('}') {
		switch string(s.key()) {
		case "role":
			role = s.shown()
		case "content":
			content, empty = s.content()
		case "reasoning":
			reasoning = s.shown()
		case "reasoning_content":
			older = s.shown()
		case "refusal":
			refusal = s.shown()
		case "tool_calls":
			tools = toolCalls(s)
		case "function_call":
			function = calledFunction(s)
		default:
			s.skip()
		}
	}
	c.Role, c.EmptyText, c.Visible = role, empty, 0
	if reasoning || older {
		c.Visible |= Reasoning
	}
	if content || refusal {
		c.Visible |= Content
	}
	if tools || function {
		c.Visible |= Tool
	}
}

// content reads a text: a string, or, as some servers send it, an array of
// parts. empty: it is the string "".
func (s *scan) content() (shown, empty bool) {
	switch s.peek() {
	case '"':
		shown = s.shown()
		return shown, !shown
	case '[':
		return s.count() > 0, false
	}
	s.skip()
	return false, false
}

// toolCalls tells whether an array of tool calls shows an id, a name or
// arguments of any.
func toolCalls(s *scan) bool {
	if !s.enter('[') {
		s.skip()
		return false
	}
	shown := false
	for s.more(']') {
		if !s.enter('{') {
			s.skip()
			continue
		}
		for s.more('}') {
			switch string(s.key()) {
			case "id":
				shown = s.shown() || shown
			case "function":
				shown = calledFunction(s) || shown
			default:
				s.skip()
			}
		}
	}
	return shown
}

// calledFunction tells whether a function's name or arguments are shown. Some
// servers send the arguments as the object that they are.
func calledFunction(s *scan) bool {
	if !s.enter('{') {
		s.skip()
		return false
	}
	shown := false
	for s.more('}') {
		switch string(s.key()) {
		case "name":
			shown = s.shown() || shown
		case "arguments":
			if s.peek() == '{' {
				shown = true
			}
			shown = s.shown() || shown
		default:
			s.skip()
		}
	}
	return shown
}

// chatLogprobs returns the number of tokens that have log probabilities.
func chatLogprobs(s *scan) int {
	if !s.enter('{') {
		s.skip()
		return 0
	}
	content, refusal := 0, 0
	for s.more('}') {
		switch string(s.key()) {
		case "content":
			content = s.count()
		case "refusal":
			refusal = s.count()
		default:
			s.skip()
		}
	}
	return content + refusal
}

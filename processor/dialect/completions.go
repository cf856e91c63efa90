package dialect

// completions is /v1/completions.
var completions = openAI{choice: completionsChoice}

// completionsChoice reads one choice.
func completionsChoice(s *scan, c *Choice) {
	s.enter('{')
	for s.more('}') {
		switch string(s.key()) {
		case "index":
			c.Index = s.index()
		case "text":
			isText := s.peek() == '"'
			shown := s.shown()
			c.EmptyText, c.Visible = isText && !shown, 0
			if shown {
				c.Visible = Content
			}
		case "logprobs":
			c.Logprobs = completionsLogprobs(s)
		case "finish_reason":
			c.Finish = s.str()
		case "token_ids":
			s.readIDs(c)
		case "prompt_token_ids":
			c.PromptIDs = Count{OK: s.peek() == '['}
			c.PromptIDs.N = int64(s.count())
		default:
			s.skip()
		}
	}
}

// completionsLogprobs returns the number of tokens that have log probabilities;
// with echo the prompt's are among them.
func completionsLogprobs(s *scan) int {
	if !s.enter('{') {
		s.skip()
		return 0
	}
	n := 0
	for s.more('}') {
		if string(s.key()) == "tokens" {
			n = s.count()
		} else {
			s.skip()
		}
	}
	return n
}

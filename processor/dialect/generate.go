package dialect

// generate is /inference/v1/generate: token ids in, token ids out, and with
// "output_mode" text as well.
var generate = openAI{choice: generateChoice, requestID: true}

// generateChoice reads one choice. The ids are what it has to say.
func generateChoice(s *scan, c *Choice) {
	s.enter('{')
	var text bool
	for s.more('}') {
		switch string(s.key()) {
		case "index":
			c.Index = s.index()
		case "token_ids":
			s.readIDs(c)
		case "text":
			text = s.shown()
		case "logprobs":
			c.Logprobs = chatLogprobs(s)
		case "finish_reason":
			c.Finish = s.str()
		default:
			s.skip()
		}
	}
	if text {
		c.Visible |= Content
	}
	if c.IDs > 0 {
		c.Visible |= Token
	}
}

func keepGenerate(in place, key []byte) (place, bool) {
	if in == placeTop && string(key) == "request_id" {
		return placeWhole, true
	}
	return keepOpenAI(in, key)
}

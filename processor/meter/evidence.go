package meter

import "github.com/inferspan/inferspan/processor/dialect"

// Token evidence, definitions 2. For one event and choice the strongest that is
// there decides how many tokens it has.

// evidence tells whether an event proves generated tokens of the choice, how
// many (0: one or more, not known), and of what kind. growth is what the
// event's continuous usage says that the choice grew by.
func (m *Meter) evidence(c *choice, f *dialect.Choice, growth int64) (tokens int64, k Kind, ok bool) {
	ids := c.ids.take(f)
	logprobs := m.generatedLogprobs(c, f)
	tokens = strongest(growth, ids, logprobs)
	visible := f.Visible != 0 && !c.calls.known(f) && !(tokens == 0 && m.isEcho(c, f))
	if m.promptOnly() || tokens == 0 && !visible {
		c.estimate += impliedTokens(f)
		return 0, KindNone, false
	}
	c.echoed = true
	c.ids.add(int64(f.IDs))
	c.logprobs.add(logprobs)
	c.estimate++
	return tokens, kindOf(f.Visible), true
}

// strongest returns the number of tokens by the strongest evidence that has one.
func strongest(growth, ids, logprobs int64) int64 {
	switch {
	case growth > 0:
		return growth
	case ids > 0:
		return ids
	default:
		return logprobs
	}
}

// kindOf is the kind of an event's tokens: the first that applies.
func kindOf(visible dialect.Kinds) Kind {
	switch {
	case visible&dialect.Reasoning != 0:
		return KindReasoning
	case visible&dialect.Content != 0:
		return KindContent
	case visible&dialect.Tool != 0:
		return KindToolCall
	case visible&dialect.Token != 0:
		return KindToken
	default:
		return KindHidden
	}
}

// impliedTokens is what the estimate counts for an event without evidence: a
// server without parsers sends an empty text for a token that shows nothing,
// such as a part of a character, and the finish reason stop implies a token.
func impliedTokens(f *dialect.Choice) int64 {
	if f.EmptyText && !f.Role || string(f.Finish) == "stop" {
		return 1
	}
	return 0
}

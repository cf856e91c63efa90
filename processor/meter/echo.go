package meter

import "github.com/inferspan/inferspan/processor/dialect"

// Echo, definitions 2: text of the request that comes back is not evidence.

const roleAssistant = "assistant"

// isEcho tells whether the text that an event shows, without growth, ids or
// logprobs beside it, is the echo of the last message. Chat sends it as the
// first content of each choice, before any token.
func (m *Meter) isEcho(c *choice, f *dialect.Choice) bool {
	if c.echoed || m.dialect != dialect.Chat || !m.asked.Echo {
		return false
	}
	if !m.asked.NoGenerationPrompt && m.asked.LastRole != roleAssistant {
		return false
	}
	if f.Visible != dialect.Content {
		return false
	}
	c.echoed = true
	return true
}

// promptOnly tells whether nothing but the prompt was asked for, so that no
// event has a token.
func (m *Meter) promptOnly() bool {
	return m.dialect == dialect.Completions && m.asked.Echo && m.asked.MaxTokens == 0
}

// generatedLogprobs returns the number of an event's logprobs that are of
// generated tokens; 0 where that can't be told. Completions echo the prompt in
// a choice's first event, with the first token, and the prompt's logprobs too.
func (m *Meter) generatedLogprobs(c *choice, f *dialect.Choice) int64 {
	n := int64(f.Logprobs)
	if c.named || m.dialect != dialect.Completions || !m.asked.Echo {
		return n
	}
	prompt := f.PromptIDs
	if !prompt.OK {
		prompt = m.response.facts.Usage.Prompt
	}
	switch {
	case !prompt.OK:
		return 0
	case n < prompt.N:
		// Fewer than the prompt has: the prompt's are not among them.
		return n
	default:
		return n - prompt.N
	}
}

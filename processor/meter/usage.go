package meter

import (
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Which usage is final and which is growth, definitions 2. Usage is cumulative:
// the last counts, never a sum of several.

// usage is what the server counted.
type usage struct {
	// completion is by final usage only. Prompt tokens are the same wherever
	// they stand; the rest is told at the end only.
	completion, prompt, cached, reasoning Opt[int64]
	// final is when the last final usage came; it settles the prompt too.
	final Opt[time.Duration]
	// input and created are the parts that cached has not, of a prompt that is
	// told in parts.
	input, created int64
}

// choiceUsage is one choice's continuous usage.
type choiceUsage struct {
	// continuous: the choice has a running count; tokens is the last.
	continuous bool
	tokens     int64
}

// takeUsage takes an event's usage and returns what it says that the event's
// choice grew by.
func (m *Meter) takeUsage(at time.Duration, f *dialect.Facts) int64 {
	u := &f.Usage
	switch {
	case !u.Present:
		return 0
	case len(f.Choices) == 0 && f.Unread > 0 && !u.Final:
		// The running count of a choice that is not followed.
		return 0
	case len(f.Choices) != 1 || u.Final:
		// Without choices it is final. Beside several it can't be divided.
		m.takeFinal(at, u)
		return 0
	}
	c := m.choices.get(f.Choices[0].Index)
	if m.isFinal(c, &f.Choices[0]) {
		m.takeFinal(at, u)
		return 0
	}
	if !m.usage.final.OK {
		m.usage.takePrompt(u)
	}
	if !u.Completion.OK {
		return 0
	}
	return c.grow(u.Completion.N)
}

// isFinal tells whether the usage beside one choice is final, because it is the
// first that the choice has and stands on its finish chunk or after it, with no
// text beside it. One that first comes after tokens without any is final too: a
// running count would have stood beside those.
func (m *Meter) isFinal(c *choice, f *dialect.Choice) bool {
	if c.usage.continuous || f.Visible != 0 {
		return false
	}
	return c.finish.OK || len(f.Finish) > 0 || c.events > 0
}

// grow takes the choice's running count and returns by how much it grew; what
// is not above 0 is no growth.
func (c *choice) grow(tokens int64) int64 {
	u := &c.usage
	before, first := u.tokens, !u.continuous
	u.continuous, u.tokens = true, tokens
	if first && c.events > 0 {
		// It counts the events before too, so it does not tell this one's.
		return 0
	}
	return tokens - before
}

// takeFinal takes a final usage. What a later one leaves out stays.
func (m *Meter) takeFinal(at time.Duration, f *dialect.Usage) {
	if !f.Present {
		return
	}
	u := &m.usage
	u.final = Some(at)
	if f.Apart {
		most(&u.completion, f.Completion)
	} else {
		set(&u.completion, f.Completion)
		set(&u.cached, f.Cached)
	}
	u.takePrompt(f)
	set(&u.reasoning, f.Reasoning)
}

// takePrompt takes the tokens of the prompt. Messages tell them in parts, and
// again: vLLM first all of them as input, in the end without the cached ones,
// Anthropic some parts only once. What was not told again is as it was; the
// largest sum counts.
func (u *usage) takePrompt(f *dialect.Usage) {
	if !f.Apart {
		set(&u.prompt, f.Prompt)
		return
	}
	if f.Prompt.OK {
		u.input = f.Prompt.N
	}
	if f.Created.OK {
		u.created = f.Created.N
	}
	most(&u.cached, f.Cached)
	sum := u.input + u.created + u.cached.V
	most(&u.prompt, dialect.Count{N: sum, OK: f.Prompt.OK || f.Created.OK || f.Cached.OK})
}

// most takes n where it is there and larger.
func most(to *Opt[int64], n dialect.Count) {
	if n.OK && (!to.OK || n.N > to.V) {
		*to = Some(n.N)
	}
}

// set takes n where it is there: null is not zero.
func set(to *Opt[int64], n dialect.Count) {
	if n.OK {
		*to = Some(n.N)
	}
}

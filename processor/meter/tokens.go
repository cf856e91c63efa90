package meter

import "github.com/inferspan/inferspan/processor/dialect"

// Tokens and their source, definitions 4.

// tokenSum adds up one kind of evidence of one choice.
type tokenSum struct {
	sum int64
	// partial: an evidence event came without, so the sum is too small.
	partial bool
}

func (t *tokenSum) add(n int64) {
	t.sum += n
	t.partial = t.partial || n == 0
}

// whole returns the sum where it is the number of the choice's tokens.
func (t *tokenSum) whole() (int64, bool) { return t.sum, t.sum > 0 && !t.partial }

// output returns the number of output tokens by the best source. A source that
// some of the tokens did not come with is none.
func (m *Meter) output() (Opt[int64], Source) {
	if m.usage.completion.OK {
		return m.usage.completion, SourceUsage
	}
	if m.choices.events() == 0 && !m.choices.anyContinuous() {
		return Opt[int64]{}, SourceNone
	}
	if n, ok := m.choices.sum((*choice).continuous); ok {
		return Some(n), SourceContinuous
	}
	if n, ok := m.choices.sum((*choice).byIDs); ok {
		return Some(n), SourceTokenIDs
	}
	if n, ok := m.choices.sum((*choice).byLogprobs); ok {
		return Some(n), SourceLogprobs
	}
	n, _ := m.choices.sum(func(c *choice) (int64, bool) { return c.estimate, true })
	return Some(n), SourceEstimate
}

// exactTokens returns the number of the choice's tokens where it is known.
func (c *choice) exactTokens() (int64, bool) {
	if n, ok := c.continuous(); ok {
		return n, true
	}
	if n, ok := c.byIDs(); ok {
		return n, true
	}
	return c.byLogprobs()
}

func (c *choice) continuous() (int64, bool) { return c.usage.tokens, c.usage.continuous }
func (c *choice) byIDs() (int64, bool)      { return c.ids.whole() }
func (c *choice) byLogprobs() (int64, bool) { return c.logprobs.whole() }

// sum adds up a count of the choices. It is not ok where a choice with evidence
// does not have it.
func (cs *choices) sum(count func(*choice) (int64, bool)) (total int64, ok bool) {
	for _, c := range cs.all {
		if c == nil {
			continue
		}
		n, has := count(c)
		if has {
			total, ok = total+n, true
		} else if c.events > 0 {
			return 0, false
		}
	}
	return total, ok
}

func (cs *choices) events() int64 {
	var n int64
	for _, c := range cs.all {
		if c != nil {
			n += c.events
		}
	}
	return n
}

func (cs *choices) anyContinuous() bool {
	for _, c := range cs.all {
		if c != nil && c.usage.continuous {
			return true
		}
	}
	return false
}

// tokenIDs adds up token ids. A server that sends with each event all ids so
// far is found out by their beginning being those of the event before.
type tokenIDs struct {
	tokenSum
	// last is the number of ids in the last list, hash of the list itself.
	last int
	hash uint64
	// lists is the number of lists so far, each of which began with the one
	// before and was longer; -1 once one did not.
	lists int
}

// cumulativeLists is the number of lists, each the beginning of the next, from
// which on they are taken for cumulative: tokens of their own repeat like that
// for a list or two.
const cumulativeLists = 3

// take returns the number of an event's own ids.
func (t *tokenIDs) take(f *dialect.Choice) int64 {
	n := f.IDs
	if n == 0 {
		return 0
	}
	own := int64(n)
	if t.lists >= 0 {
		if t.lists > 0 && !(n > t.last && hashIDs(f.IDList, t.last) == t.hash) {
			t.lists = -1
			return own
		}
		t.lists++
		if t.lists >= cumulativeLists {
			own = int64(n - t.last)
		}
		t.last, t.hash = n, hashIDs(f.IDList, n)
	}
	return own
}

// whole returns the sum, or of cumulative lists the last.
func (t *tokenIDs) whole() (int64, bool) {
	if t.lists >= cumulativeLists && !t.partial {
		return int64(t.last), true
	}
	return t.tokenSum.whole()
}

// hashIDs returns a hash of the first n ids of a list.
func hashIDs(list []byte, n int) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range list {
		if b == ',' {
			if n--; n == 0 {
				break
			}
		}
		h = (h ^ uint64(b)) * prime
	}
	return h
}

package meter

import "time"

// tpot returns the time per output token of each choice, definitions 3: the
// time from its first evidence to its last, over the tokens after its first
// instant. A choice of one instant has none: its tokens took no time that was
// seen.
func (m *Meter) tpot(r *Record) []TPOTSample {
	var samples []TPOTSample
	for _, c := range m.choices.all {
		if c == nil || c.instants < 2 {
			continue
		}
		tokens, exact := m.tokensOf(c, r)
		if tokens < 2 {
			continue
		}
		first := float64(1)
		if c.first.unknown {
			exact = false
		} else {
			first = float64(c.first.tokens)
		}
		if tokens <= first {
			continue
		}
		value := float64(c.current.at-c.first.at) / (tokens - first)
		samples = append(samples, TPOTSample{Value: time.Duration(value), Assumed: !exact})
	}
	return samples
}

// tokensOf returns the number of tokens of a choice; where only the total is
// known, its share of it.
func (m *Meter) tokensOf(c *choice, r *Record) (tokens float64, exact bool) {
	if r.Choices == 1 && r.OutputTokens.OK {
		return float64(r.OutputTokens.V), r.OutputSource != SourceEstimate
	}
	if n, ok := c.exactTokens(); ok {
		return float64(n), true
	}
	if r.OutputTokens.OK && !m.choices.unread {
		return float64(r.OutputTokens.V) / float64(r.Choices), false
	}
	return 0, false
}

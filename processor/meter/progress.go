package meter

import "time"

// Progress tells how many tokens came so far, by the evidence, an unknown number
// taken for one, and when the last did. It is cheap: it may be asked after each
// frame. ok is false before the first token.
func (m *Meter) Progress() (tokens int64, last time.Duration, ok bool) {
	return m.gaps.counted, m.clocks.lastToken.V, m.clocks.lastToken.OK
}

package meter

import "github.com/inferspan/inferspan/processor/dialect"

// Tool calls of responses, definitions 2: a tool's name is evidence wherever it
// first appears, be it where the call ends.

// maxCalls is the number of calls that are told apart; calls beyond it are not
// evidence where they end.
const maxCalls = 64

// calls are the calls that were shown, bit by bit.
type calls uint64

// known tells whether an event ends a call that was shown before, and takes the
// call for shown.
func (s *calls) known(f *dialect.Choice) bool {
	if f.Visible&dialect.Tool == 0 {
		return false
	}
	n := f.Call.N
	if !f.Call.OK || n >= maxCalls {
		return f.Ended
	}
	before := *s&(1<<n) != 0
	*s |= 1 << n
	return f.Ended && before
}

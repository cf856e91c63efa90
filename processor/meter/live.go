package meter

import "time"

// Live is what an exchange that has not ended shows of itself.
type Live struct {
	Labels Labels
	Stream bool
	Start  time.Time
	// Tokens is how many came so far, an unknown number taken for one; LastToken
	// is when the last did, zero before the first.
	Tokens    int64
	LastToken time.Time
}

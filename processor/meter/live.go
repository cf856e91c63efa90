package meter

import "time"

// Live is what an exchange that has not ended shows of itself.
type Live struct {
	Labels Labels
	Stream bool
	Start  time.Time
}

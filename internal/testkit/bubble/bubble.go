// Package bubble moves the time of testing/synctest's bubbles.
package bubble

import (
	"testing/synctest"
	"time"
)

// Pass lets so much of the bubble's time pass, and everything be done that is due
// by then. It is no real sleep: a bubble's clock jumps as soon as nothing in it has
// anything left to do. Outside of a bubble it panics before it would wait.
func Pass(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
	synctest.Wait()
}

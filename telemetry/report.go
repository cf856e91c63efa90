package telemetry

import (
	"sync/atomic"
	"time"
)

// reportInterval is the least time between two reports of the same kind.
const reportInterval = 30 * time.Second

// sampler thins out reports of what goes wrong again and again. It is safe for
// concurrent use.
type sampler struct {
	last    atomic.Int64 // Unix nanoseconds
	skipped atomic.Int64
}

// due tells whether a report is due, and how many were left out before it.
func (s *sampler) due() (leftOut int64, ok bool) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last < int64(reportInterval) || !s.last.CompareAndSwap(last, now) {
		s.skipped.Add(1)
		return 0, false
	}
	return s.skipped.Swap(0), true
}

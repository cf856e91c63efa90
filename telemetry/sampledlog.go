package telemetry

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// sampledLog writes at most one line in a logInterval and says how many it left
// out. It is safe for concurrent use.
type sampledLog struct {
	last    atomic.Int64 // Unix nanoseconds
	skipped atomic.Int64
}

const logInterval = 30 * time.Second

func (s *sampledLog) warn(log *slog.Logger, msg string, args ...any) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last < int64(logInterval) || !s.last.CompareAndSwap(last, now) {
		s.skipped.Add(1)
		return
	}
	log.Warn(msg, append(args, "left_out", s.skipped.Swap(0))...)
}

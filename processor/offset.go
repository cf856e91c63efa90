package processor

import "time"

// ClockOffset is how far Envoy's clock is behind ours, negative where it is
// ahead: the smallest difference between the arrival of a request and its
// request.time in the last minute. Of several Envoys it is the one that is
// furthest off; ok is false where none told a time in that minute. A few
// milliseconds are the way that a request takes to us.
func (s *Service) ClockOffset() (offset time.Duration, ok bool) {
	return s.origins.offset(s.cfg.Now())
}

func (o *origins) offset(at time.Time) (offset time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := int64(at.Sub(o.base) / time.Second)
	for _, c := range o.peers {
		if now-c.used >= clockWindow {
			continue
		}
		if d := c.smallest(now); !ok || d.Abs() > offset.Abs() {
			offset, ok = d, true
		}
	}
	return offset, ok
}

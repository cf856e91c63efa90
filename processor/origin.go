package processor

import (
	"net"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

const (
	// maxOriginAge is how long before its arrival a request may have begun and
	// its request.time still be believed.
	maxOriginAge = 5 * time.Second
	// maxClockOffset is the largest value that the smallest difference between
	// arrival and request.time may have: a few milliseconds are the opening of
	// the stream, much more is another clock.
	maxClockOffset = 100 * time.Millisecond
	// clockWindow is the number of seconds over which the smallest is taken.
	clockWindow = 60
	// maxPeers bounds the Envoys that are told apart.
	maxPeers = 1024
)

// origins decides whose clock an exchange's origin is. It keeps the smallest
// difference between arrival and request.time for each Envoy.
type origins struct {
	mu    sync.Mutex
	base  time.Time // the first arrival; seconds are counted from it
	peers map[string]*peerClock
}

func newOrigins() *origins { return &origins{peers: make(map[string]*peerClock)} }

// requestTime reads the attribute of this name; what is no time is the zero one,
// which stands for none.
func requestTime(text string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t
}

// origin returns when the request began whose first message arrived from peer and
// that began at begun by Envoy's clock, zero where it did not say.
func (o *origins) origin(peer string, arrival, begun time.Time) (time.Time, meter.StartSource) {
	if begun.IsZero() {
		return arrival, meter.StartArrival
	}
	age := arrival.Sub(begun)
	smallest := o.observe(peer, arrival, age)
	if age < 0 || age > maxOriginAge || smallest < 0 || smallest > maxClockOffset {
		return arrival, meter.StartArrival
	}
	return begun, meter.StartEnvoy
}

// waited is how long before its arrival, beyond what others from peer take, a
// request began that was seen by origin; 0 where it told no time.
func (o *origins) waited(peer string, arrival, begun time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.peers[peer]
	if c == nil || begun.IsZero() {
		return 0
	}
	return arrival.Sub(begun) - c.smallest(int64(arrival.Sub(o.base)/time.Second))
}

// observe notes a difference and returns the smallest of the last minute, this
// one included.
func (o *origins) observe(peer string, arrival time.Time, age time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.base.IsZero() {
		o.base = arrival
	}
	now := int64(arrival.Sub(o.base) / time.Second)
	c := o.peers[peer]
	if c == nil {
		if len(o.peers) >= maxPeers {
			o.evict()
		}
		c = new(peerClock)
		o.peers[peer] = c
	}
	c.used = now
	c.put(now, age)
	return c.smallest(now)
}

// evict drops the peer that was silent longest.
func (o *origins) evict() {
	var oldest string
	var used int64
	first := true
	for p, c := range o.peers {
		if first || c.used < used {
			oldest, used, first = p, c.used, false
		}
	}
	delete(o.peers, oldest)
}

// peerClock holds the smallest difference of each of the last clockWindow
// seconds.
type peerClock struct {
	used  int64
	slots [clockWindow]clockSlot
}

type clockSlot struct {
	second int64
	filled bool
	age    time.Duration
}

func (c *peerClock) put(now int64, age time.Duration) {
	// Arrivals are read by many goroutines, so that now can be a little less
	// than the base: the remainder must not be negative.
	s := &c.slots[(now%clockWindow+clockWindow)%clockWindow]
	if !s.filled || s.second != now || age < s.age {
		*s = clockSlot{second: now, filled: true, age: age}
	}
}

// smallest returns the smallest difference of the last clockWindow seconds. It
// is called after put, so that there is one.
func (c *peerClock) smallest(now int64) time.Duration {
	var least time.Duration
	found := false
	for i := range c.slots {
		s := &c.slots[i]
		if s.filled && now-s.second < clockWindow && (!found || s.age < least) {
			least, found = s.age, true
		}
	}
	return least
}

// peerKey names the Envoy at addr. Its workers open a connection each, and they
// share a clock: the port tells nothing.
func peerKey(addr net.Addr) string {
	switch a := addr.(type) {
	case nil:
		return ""
	case *net.TCPAddr:
		return a.IP.String()
	default:
		return a.Network() + ":" + a.String()
	}
}

package processor

import (
	"sync"
	"time"
)

// unaskedFor is how long a pool that sent usage unasked is taken to go on: each
// further stream of its kind begins the time anew.
const unaskedFor = 10 * time.Minute

// usagePools remembers which pools are not to be asked for usage. It has at most
// one entry a pool of the configuration, and lives as long as the Service.
type usagePools struct {
	mu    sync.Mutex
	pools map[string]usagePool
}

// usagePool is what one pool has shown.
type usagePool struct {
	refuses bool      // it answered a request with 400 because we asked
	unasked time.Time // when it last sent usage that nobody asked for
}

// ask tells whether pool is to be asked for usage at now.
func (u *usagePools) ask(pool string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	p, known := u.pools[pool]
	return !known || !p.refuses && now.Sub(p.unasked) >= unaskedFor
}

// sentUnasked notes that pool sent usage unasked. What is asked there for would
// be hidden from clients who get it without.
func (u *usagePools) sentUnasked(pool string, now time.Time) {
	u.change(pool, func(p *usagePool) { p.unasked = now })
}

// refused notes that pool refused to be asked, and tells whether that is new. It
// is never forgotten: to try again would cost a client its request.
func (u *usagePools) refused(pool string) (first bool) {
	u.change(pool, func(p *usagePool) {
		first = !p.refuses
		p.refuses = true
	})
	return first
}

func (u *usagePools) change(pool string, f func(*usagePool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pools == nil {
		u.pools = make(map[string]usagePool)
	}
	p := u.pools[pool]
	f(&p)
	u.pools[pool] = p
}

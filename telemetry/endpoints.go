package telemetry

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inferspan/inferspan/processor/meter"
)

// Endpoint is what is known now of an endpoint of the pools.
type Endpoint struct {
	Pool, Address string
	// InFlight is the number of exchanges that this process counts there.
	InFlight int
	// Queue and KVUsage are by the endpoint's own account: requests that wait,
	// and the part of its KV cache in use.
	Queue, KVUsage meter.Opt[float64]
	// Healthy tells that it can be chosen.
	Healthy bool
}

const (
	// endpointLinger is for how long an endpoint that left is shown: its last
	// exchanges are to be seen by whoever collects.
	endpointLinger = 10 * time.Minute
	// maxEndpoints bounds the endpoints that are told apart. What Envoy says that
	// it sent a request to need not be in any pool.
	maxEndpoints = 4096
)

// endpointStore holds what exchanges showed of endpoints. The SDK's instruments
// keep every series as long as the process lives, and endpoints come and go. It
// is safe for concurrent use.
type endpointStore struct {
	present func() []Endpoint // those of the pools; nil: none are
	now     func() time.Time

	mu     sync.Mutex
	series map[endpointKey]*endpointSeries // Invariant: at most maxEndpoints, and one for the surplus of each pool
}

type endpointKey struct{ pool, address string }

// endpointSeries are the series of one endpoint. Its totals only grow.
type endpointSeries struct {
	endpointKey
	endpointTotals
	start time.Time // of all of its series
	last  time.Time // when it was in a pool, or something was added
}

// endpointTotals are what is counted of an endpoint.
type endpointTotals struct {
	ttft, tpot endpointHistogram
	// requests are by outcome, failures of scrapes by reason; both are words of
	// ours and few.
	requests, failures map[string]int64
}

type endpointHistogram struct {
	counts []uint64 // by bucket; nil: no samples
	count  uint64
	sum    time.Duration // of up to 292 years
}

func newEndpointStore(present func() []Endpoint) *endpointStore {
	if present == nil {
		present = func() []Endpoint { return nil }
	}
	return &endpointStore{present: present, now: time.Now, series: make(map[endpointKey]*endpointSeries)}
}

// to adds something to the series of an endpoint; the empty address is none.
// folded tells that there was no room for the endpoint's own.
func (s *endpointStore) to(pool, address string, add func(*endpointTotals)) (folded bool) {
	if address == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := endpointKey{clean(pool), clean(address)}
	e := s.series[key]
	if e == nil && len(s.series) >= maxEndpoints {
		folded, key.address = true, otherValue
		e = s.series[key]
	}
	now := s.now()
	if e == nil {
		// What is kept must not keep the message alive that it came in.
		key = endpointKey{strings.Clone(key.pool), strings.Clone(key.address)}
		e = &endpointSeries{endpointKey: key, start: now, endpointTotals: endpointTotals{
			requests: make(map[string]int64), failures: make(map[string]int64),
		}}
		s.series[key] = e
	}
	e.last = now
	add(&e.endpointTotals)
	return folded
}

// first takes the time to an exchange's first token.
func (s *endpointStore) first(l *meter.Labels, ttft time.Duration) (folded bool) {
	return s.to(l.Pool, l.Endpoint, func(e *endpointTotals) { e.ttft.add(bucketsEndpointTTFT, ttft) })
}

// end takes an exchange that ended.
func (s *endpointStore) end(r *meter.Record) (folded bool) {
	return s.to(r.Route.Pool, cmp.Or(r.Route.Served, r.Route.Endpoint), func(e *endpointTotals) {
		e.requests[string(r.Outcome)]++
		if r.Class() == meter.ClassDone {
			for _, sample := range r.TPOT {
				e.tpot.add(bucketsEndpointTPOT, sample.Value)
			}
		}
	})
}

func (h *endpointHistogram) add(bounds []float64, d time.Duration) {
	if h.counts == nil {
		h.counts = make([]uint64, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	h.counts[i]++
	h.count++
	h.sum += d
}

// ScrapeFailed counts one page of an endpoint's metrics that could not be read.
func (t *Telemetry) ScrapeFailed(pool, endpoint, reason string) {
	t.endpointAdded(t.endpoints.to(pool, endpoint, func(e *endpointTotals) { e.failures[reason]++ }))
}

func (t *Telemetry) endpointFirst(l *meter.Labels, ttft time.Duration) {
	t.endpointAdded(t.endpoints.first(l, ttft))
}

func (t *Telemetry) endpointEnd(r *meter.Record) { t.endpointAdded(t.endpoints.end(r)) }

func (t *Telemetry) endpointAdded(folded bool) {
	if folded {
		t.instruments.folded(foldFull)
	}
}

// each calls f with every series, none of which changes meanwhile, and ends
// those whose endpoints left long ago.
func (s *endpointStore) each(f func(*endpointSeries)) {
	present := s.present()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, e := range present {
		if own := s.series[endpointKey{e.Pool, e.Address}]; own != nil {
			own.last = now
		}
	}
	for key, e := range s.series {
		if now.Sub(e.last) > endpointLinger {
			delete(s.series, key)
			continue
		}
		f(e)
	}
}

func (k endpointKey) attributes(kvs ...attribute.KeyValue) attribute.Set {
	kvs = append(kvs, keyEndpoint.String(k.address))
	if k.pool != "" {
		kvs = append(kvs, keyPool.String(k.pool))
	}
	return attribute.NewSet(kvs...)
}

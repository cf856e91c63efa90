package processor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// fakeTelemetry keeps what it is told.
type fakeTelemetry struct {
	mu      sync.Mutex
	begins  []Begin
	records []*meter.Record
	firsts  []meter.Milestone
	servers []string // whom each of firsts is credited to
	routed  []meter.Route
	counts  map[string]int
	phases  map[string]int
	trace   meter.Trace
	panicIn string // the method that panics
}

func newFakeTelemetry() *fakeTelemetry {
	return &fakeTelemetry{
		counts: make(map[string]int),
		phases: make(map[string]int),
		trace:  meter.Trace{TraceID: [16]byte{0: 1, 15: 2}, SpanID: [8]byte{0: 3, 7: 4}, Sampled: true, UpstreamSampled: true},
	}
}

func (f *fakeTelemetry) enter(method string) {
	f.mu.Lock()
	p := f.panicIn == method
	f.mu.Unlock()
	if p {
		panic("injected in " + method)
	}
}

func (f *fakeTelemetry) Begin(b Begin) meter.Trace {
	f.enter("Begin")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins = append(f.begins, b)
	return f.trace
}

func (f *fakeTelemetry) First(m meter.Milestone, _ time.Duration, l meter.Labels) {
	f.enter("First")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.firsts = append(f.firsts, m)
	f.servers = append(f.servers, l.Endpoint)
}

func (f *fakeTelemetry) Routed(r meter.Route, _ meter.Labels) {
	f.enter("Routed")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routed = append(f.routed, r)
}

func (f *fakeTelemetry) End(r *meter.Record) {
	f.enter("End")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

func (f *fakeTelemetry) Overhead(phase string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d < 0 {
		panic(fmt.Sprintf("overhead of %s is %v", phase, d))
	}
	f.phases[phase]++
}

func (f *fakeTelemetry) Count(event string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[event]++
}

func (f *fakeTelemetry) Unmatched(reason string) {
	f.enter("Unmatched")
	f.Count("unmatched: " + reason)
}

func (f *fakeTelemetry) Unseen() { f.Count("unseen") }

func (f *fakeTelemetry) count(event string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[event]
}

func (f *fakeTelemetry) recorded() []*meter.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*meter.Record(nil), f.records...)
}

// fakeRouter decides by a function and checks that every Begin has its End.
type fakeRouter struct {
	mu       sync.Mutex
	decideBy func(route.Request) route.Decision
	asked    []route.Request
	inFlight map[string]int
	begins   int
	byPrefix bool
	results  []route.Result
	// prefilled is the sum of the tokens that were read.
	prefilled int
	expected  map[[8]byte]route.Load
	arrived   [][8]byte
}

const (
	testEndpoint = "10.0.0.1:8000"
	testPool     = "blue"
)

// toEndpoint routes all to testEndpoint, and the model alias under another name.
func toEndpoint(q route.Request) route.Decision {
	d := route.Decision{Pool: testPool, Endpoint: testEndpoint, Policy: "least-load", Reason: route.ReasonModel}
	if q.Model == "alias" {
		d.Model = "real-name"
	}
	return d
}

func newFakeRouter() *fakeRouter {
	return &fakeRouter{decideBy: toEndpoint, inFlight: make(map[string]int), expected: make(map[[8]byte]route.Load)}
}

func (f *fakeRouter) Decide(q route.Request) route.Decision {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	return f.decideBy(q)
}

func (f *fakeRouter) WantsPrefix() bool { return f.byPrefix }

func (f *fakeRouter) Begin(l route.Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins++
	f.inFlight[l.Endpoint]++
}

func (f *fakeRouter) End(l route.Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight[l.Endpoint]--
}

func (f *fakeRouter) Prefilled(l route.Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prefilled += l.Tokens
}

func (f *fakeRouter) Expect(span [8]byte, l route.Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected[span] = l
}

func (f *fakeRouter) Arrived(span [8]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived = append(f.arrived, span)
}

func (f *fakeRouter) Done(r route.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = append(f.results, r)
}

// learned is what Prefilled and Done said.
func (f *fakeRouter) learned() (prefilled int, results []route.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.prefilled, slices.Clone(f.results)
}

// unbalanced names an endpoint whose Begins and Ends differ, "" for none.
func (f *fakeRouter) unbalanced() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for e, n := range f.inFlight {
		if n != 0 {
			return fmt.Sprintf("%s: %d", e, n)
		}
	}
	return ""
}

type fakeJournal struct {
	mu      sync.Mutex
	records []*meter.Record
}

func (f *fakeJournal) Add(r *meter.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

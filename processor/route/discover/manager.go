package discover

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// Router takes endpoints: a route.Router.
type Router interface {
	SetEndpoints(pool string, endpoints []route.Endpoint) error
}

// State is how the discovery of one pool stands.
type State struct {
	Pool   string
	Source string // its String
	// Endpoints is how many are in use.
	Endpoints int
	// Found is when the source last said what there is; zero: not yet.
	Found time.Time
	// Err is why the source can't tell what there is, or that there is nothing;
	// nil: it can.
	Err error
	// Changes and Failures count the endpoints' changes and the errors since
	// the pool has this source.
	Changes, Failures int64
}

// Manager runs the sources of all pools. It is safe for concurrent use.
type Manager struct {
	router Router
	log    *slog.Logger

	mu      sync.Mutex
	ctx     context.Context     //nolint:containedctx // Run's, for the sources that Apply brings; nil while it does not run
	running map[string]*running // by pool
	wg      sync.WaitGroup      // of the running
	synced  chan struct{}       // closed when every source has spoken once
}

// New returns a Manager that has no sources yet.
func New(router Router, log *slog.Logger) *Manager {
	return &Manager{router: router, log: log, running: map[string]*running{}, synced: make(chan struct{})}
}

// Apply has these sources run, by the name of their pool, and no others. One that
// is deeply equal to the one that runs is that one, and goes on. commit
// is called before, while no source is heard: it has the router know the pools.
// With its error nothing has changed.
func (m *Manager) Apply(sources map[string]Source, commit func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := commit(); err != nil {
		return err
	}
	for pool, r := range m.running {
		if next := sources[pool]; next == nil || !reflect.DeepEqual(next, r.source) {
			r.cancel()
			delete(m.running, pool)
			switch {
			case next == nil:
			case next.String() == r.state.Source:
				m.add(pool, next, r.state, r.current)
			default: // the router keeps what it has until the new one speaks
				m.add(pool, next, State{Pool: pool, Source: next.String(), Endpoints: r.state.Endpoints}, r.current)
			}
		}
	}
	for pool, source := range sources {
		if m.running[pool] == nil {
			m.add(pool, source, State{Pool: pool, Source: source.String()}, nil)
		}
	}
	m.noteSynced()
	return nil
}

// Run runs the sources until ctx ends and they have.
func (m *Manager) Run(ctx context.Context) {
	m.mu.Lock()
	m.ctx = ctx
	for _, r := range m.running {
		m.start(r)
	}
	m.noteSynced()
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ctx = nil
	m.mu.Unlock()
	m.wg.Wait()
}

// Synced is closed once Run is called and every source has said what there is,
// be it nothing. It stays closed: a source that a later configuration brings
// must not take all replicas out of service at once.
func (m *Manager) Synced() <-chan struct{} { return m.synced }

// States returns the state of each source, in the order of the pools' names.
func (m *Manager) States() []State {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]State, 0, len(m.running))
	for _, r := range m.running {
		out = append(out, r.state)
	}
	slices.SortFunc(out, func(a, b State) int { return strings.Compare(a.Pool, b.Pool) })
	return out
}

// add has source run for pool. m.mu is held.
func (m *Manager) add(pool string, source Source, state State, current []route.Endpoint) {
	r := &running{m: m, source: source, state: state, current: current, cancel: func() {}}
	m.running[pool] = r
	if m.ctx != nil {
		m.start(r)
	}
}

// start begins r's goroutine. m.mu is held.
func (m *Manager) start(r *running) {
	ctx, cancel := context.WithCancel(m.ctx)
	r.cancel = cancel
	m.wg.Go(func() {
		defer cancel()
		r.run(ctx)
	})
}

// noteSynced closes m.synced when it is time to. m.mu is held.
func (m *Manager) noteSynced() {
	for _, r := range m.running {
		if r.state.Found.IsZero() {
			return
		}
	}
	select {
	case <-m.synced:
	default:
		if m.ctx != nil {
			close(m.synced)
		}
	}
}

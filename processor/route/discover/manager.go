package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// restartWait is how long after its failure a source is run again.
const restartWait = 10 * time.Second

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

// Apply has these sources run, by the name of their pool, and no others. commit
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

// running is one source at work; it is the source's Sink. m.mu guards what
// changes.
type running struct {
	m       *Manager
	source  Source
	cancel  context.CancelFunc
	state   State
	current []route.Endpoint // what the source found last
	effect  string           // of state.Err, as last told
}

// run runs the source, again and again where it fails, until ctx ends.
func (r *running) run(ctx context.Context) {
	for {
		err := r.try(ctx)
		if ctx.Err() != nil {
			return
		}
		r.Failed(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartWait):
		}
	}
}

// try is the source's Run. Its panic ends it and nothing else.
func (r *running) try(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if err := r.source.Run(ctx, r); err != nil {
		return err
	}
	return errors.New("ended without a reason")
}

// Found implements Sink.
func (r *running) Found(endpoints []route.Endpoint) { r.take(endpoints, nil) }

// Lost implements Sink.
func (r *running) Lost(err error) { r.take(nil, err) }

// Failed implements Sink.
func (r *running) Failed(err error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.heard() {
		r.fail(err, "those found before stay")
	}
}

// heard tells whether what r says still counts. r.m.mu is held.
func (r *running) heard() bool { return r.m.running[r.state.Pool] == r }

func (r *running) take(endpoints []route.Endpoint, because error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if !r.heard() {
		return
	}
	if err := r.m.router.SetEndpoints(r.state.Pool, endpoints); err != nil {
		r.fail(err, "those found before stay")
		return
	}
	r.state.Found = time.Now()
	r.note(endpoints)
	if because != nil {
		r.fail(because, "none is left")
	} else if r.state.Err != nil {
		r.state.Err = nil
		r.m.log.Info("endpoints are discovered again", "pool", r.state.Pool, "source", r.state.Source, "endpoints", len(endpoints))
	}
	r.m.noteSynced()
}

// fail notes an error, and tells it where it or its effect is another than before.
func (r *running) fail(err error, effect string) {
	r.state.Failures++
	if r.state.Err == nil || r.state.Err.Error() != err.Error() || r.effect != effect {
		r.m.log.Warn("endpoints can't be discovered", "pool", r.state.Pool, "source", r.state.Source,
			"endpoints", r.state.Endpoints, "effect", effect, "error", err)
	}
	r.state.Err, r.effect = err, effect
}

// maxTold is how many endpoints a line of the log names.
const maxTold = 10

// note notes what is in use now, and tells what has changed.
func (r *running) note(endpoints []route.Endpoint) {
	added, removed := missing(endpoints, r.current), missing(r.current, endpoints)
	r.current, r.state.Endpoints = endpoints, len(endpoints)
	if len(added)+len(removed) == 0 {
		return
	}
	r.state.Changes++
	r.m.log.Info("endpoints", "pool", r.state.Pool, "source", r.state.Source, "endpoints", len(endpoints),
		"added", len(added), "removed", len(removed),
		"added_first", added[:min(maxTold, len(added))], "removed_first", removed[:min(maxTold, len(removed))])
}

// missing returns those of a that are not in b, as they are in a.
func missing(a, b []route.Endpoint) []string {
	in := make(map[route.Endpoint]bool, len(b))
	for _, e := range b {
		in[e] = true
	}
	out := []string{}
	for _, e := range a {
		if !in[e] {
			out = append(out, e.Address)
		}
	}
	return out
}

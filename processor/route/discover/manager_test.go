package discover

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/processor/route"
)

const e1, e2, e3 = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"

// scripted is a source that says what a test has it say, in the test's own bubble.
type scripted struct {
	name string
	// begun gets the Sink at each Run, say what to do then; its error ends Run.
	begun chan Sink
	say   chan func(Sink) error
	other int // another setting
}

func newScripted(name string) *scripted {
	return &scripted{name: name, begun: make(chan Sink, 10), say: make(chan func(Sink) error)}
}

func (s *scripted) String() string { return s.name }

func (s *scripted) Run(ctx context.Context, to Sink) error {
	s.begun <- to
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-s.say:
			if err := f(to); err != nil {
				return err
			}
		}
	}
}

func (s *scripted) found(addresses ...string) {
	var endpoints []route.Endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, route.Endpoint{Address: a})
	}
	s.say <- func(to Sink) error { to.Found(endpoints); return nil }
	synctest.Wait()
}

func (s *scripted) failed(text string) {
	s.say <- func(to Sink) error { to.Failed(errors.New(text)); return nil }
	synctest.Wait()
}

// managed is a Manager at work on a real router.
type managed struct {
	*Manager

	t      *testing.T
	router *route.Router
	lines  *strings.Builder
}

// manage runs a Manager in scripted time. before is called before Run, during
// while it runs.
func manage(t *testing.T, before, during func(m *managed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &managed{t: t, lines: &strings.Builder{}}
		var err error
		if m.router, err = route.New(route.Config{}); err != nil {
			t.Fatal(err)
		}
		m.Manager = New(m.router, slog.New(slog.NewTextHandler(m.lines, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		before(m)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(ctx)
		}()
		synctest.Wait()
		during(m)
		cancel()
		<-ended
	})
}

// apply has pool have source, by a configuration with no other pools.
func (m *managed) apply(pool string, source Source) {
	m.t.Helper()
	c := route.Config{Pools: []route.Pool{{Name: pool, Source: source.String()}}}
	if err := m.Apply(map[string]Source{pool: source}, func() error { return m.router.Apply(c) }); err != nil {
		m.t.Errorf("Apply: %v", err)
	}
	synctest.Wait()
}

// want checks which endpoints the router picks from.
func (m *managed) want(want ...string) {
	m.t.Helper()
	got := m.router.Decide(route.Request{Path: "/v1/models"}).Candidates
	slices.Sort(got)
	if !slices.Equal(got, want) {
		m.t.Errorf("the pool has %q, want %q", got, want)
	}
}

// told checks what was logged since the last time.
func (m *managed) told(want ...string) {
	m.t.Helper()
	got := strings.Split(strings.TrimSuffix(m.lines.String(), "\n"), "\n")
	m.lines.Reset()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		m.t.Errorf("logged (-want +got):\n%s", diff)
	}
}

func (m *managed) isSynced() bool {
	select {
	case <-m.Synced():
		return true
	default:
		return false
	}
}

// A pool for which nothing is found, from the beginning too, is warned of once.
func TestManager_Empty(t *testing.T) {
	var s *scripted
	manage(t, func(m *managed) { s = newScripted("a"); m.apply("default", s) }, func(m *managed) {
		const empty = `msg="the pool is empty" pool=default source=a endpoints=0 effect="its requests get 503"`
		s.found()
		m.told(empty)
		s.found()
		m.told()
		s.found(e1)
		m.told(`msg=endpoints pool=default source=a endpoints=1 added=1 removed=0 added_first=[10.0.0.1:8000] removed_first=[]`)
		s.found()
		m.told(`msg=endpoints pool=default source=a endpoints=0 added=0 removed=1 added_first=[] removed_first=[10.0.0.1:8000]`, empty)
	})
}

func TestManager_Reports(t *testing.T) {
	var s *scripted
	manage(t, func(m *managed) { s = newScripted("a"); m.apply("default", s) }, func(m *managed) {
		s.found(e1, e2)
		m.want(e1, e2)
		m.told(`msg=endpoints pool=default source=a endpoints=2 added=2 removed=0 added_first="[10.0.0.1:8000 10.0.0.2:8000]" removed_first=[]`)
		s.found(e1, e2) // nothing new
		bubble.Pass(time.Minute)
		for range 3 {
			s.failed("no answer")
		}
		m.want(e1, e2)
		m.told(`msg="endpoints can't be discovered" pool=default source=a endpoints=2 effect="those found before stay" error="no answer"`)
		if diff := cmp.Diff(State{Pool: "default", Source: "a", Endpoints: 2, Err: m.States()[0].Err, Found: time.Now().Add(-time.Minute), Changes: 1, Failures: 3},
			m.States()[0], cmpopts.EquateErrors()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		s.found(e2, e3)
		m.want(e2, e3)
		m.told(`msg=endpoints pool=default source=a endpoints=2 added=1 removed=1 added_first=[10.0.0.3:8000] removed_first=[10.0.0.1:8000]`,
			`msg="endpoints are discovered again" pool=default source=a endpoints=2`)
		s.found("nonsense")
		m.want(e2, e3)
		m.told(`msg="endpoints can't be discovered" pool=default source=a endpoints=2 effect="those found before stay" error="set the endpoints of the pool \"default\": endpoints[0]: \"nonsense\": want ip:port, such as 10.0.0.7:8000 or [fd00::7]:8000"`)
		s.failed("gone")
		m.told(`msg="endpoints can't be discovered" pool=default source=a endpoints=2 effect="those found before stay" error=gone`)
		s.say <- func(to Sink) error { to.Lost(errors.New("gone")); return nil }
		synctest.Wait()
		m.want()
		m.told(`msg=endpoints pool=default source=a endpoints=0 added=0 removed=2 added_first=[] removed_first="[10.0.0.2:8000 10.0.0.3:8000]"`,
			`msg="endpoints can't be discovered" pool=default source=a endpoints=0 effect="none is left" error=gone`,
			`msg="the pool is empty" pool=default source=a endpoints=0 effect="its requests get 503"`)
	})
}

// It is in sync when each source has said what there is, be it nothing; trouble
// says nothing of it, and what comes later takes nothing back.
func TestManager_Synced(t *testing.T) {
	manage(t, func(m *managed) {
		if m.isSynced() {
			t.Error("in sync before it runs")
		}
	}, func(m *managed) {
		if !m.isSynced() {
			t.Error("not in sync without any source")
		}
	})
	var found, lost, failed *scripted
	pools := func(sources map[string]Source) (map[string]Source, func() error) {
		return sources, func() error { return nil }
	}
	manage(t, func(m *managed) {
		found, lost, failed = newScripted("x"), newScripted("y"), newScripted("z")
		c := route.Config{Pools: []route.Pool{{Name: "x", Source: "x"}, {Name: "y", Source: "y"}, {Name: "z", Source: "z"}}}
		sources := map[string]Source{"x": found, "y": lost, "z": failed}
		if err := m.Apply(sources, func() error { return m.router.Apply(c) }); err != nil {
			t.Error(err)
		}
	}, func(m *managed) {
		f := func(when string, want bool) {
			t.Helper()
			if m.isSynced() != want {
				t.Errorf("%s: in sync is %t, want %t", when, !want, want)
			}
		}
		f("at the beginning", false)
		found.found(e1)
		failed.failed("no answer")
		f("two are silent", false)
		lost.say <- func(to Sink) error { to.Lost(errors.New("gone")); return nil }
		synctest.Wait()
		f("one knows nothing", false)
		if err := m.Apply(pools(map[string]Source{"x": found, "y": lost})); err != nil {
			t.Error(err)
		}
		f("the one that knows nothing is no longer asked for", true)
		if err := m.Apply(pools(map[string]Source{"x": found, "z": failed})); err != nil {
			t.Error(err)
		}
		f("another that knows nothing", true)
	})
}

func TestManager_Apply(t *testing.T) {
	var s *scripted
	manage(t, func(m *managed) { s = newScripted("a"); m.apply("default", s) }, func(m *managed) {
		same, other := newScripted("a"), newScripted("b")
		same.other = 1
		old := <-s.begun
		s.found(e1)
		m.apply("default", s)
		if len(s.begun) != 0 {
			t.Error("the same source was run anew")
		}
		if err := m.Apply(nil, func() error { return errors.New("no") }); err == nil || len(m.States()) != 1 {
			t.Errorf("a configuration that can't be: %v, %d sources", err, len(m.States()))
		}
		m.want(e1)

		m.apply("default", same) // another setting, the same place
		<-same.begun
		m.want(e1)
		old.Found([]route.Endpoint{{Address: e3}})
		m.want(e1) // what the old one says no longer counts
		if got := m.States()[0]; got.Endpoints != 1 || got.Changes != 1 {
			t.Errorf("the state is %+v, want that from before", got)
		}
		m.lines.Reset()
		same.found(e1)
		m.told("") // nothing new
		same.found(e1, e2)
		m.want(e1, e2)

		m.apply("default", other)
		<-other.begun
		m.want(e1, e2)
		if got := m.States()[0]; got.Endpoints != 2 || got.Changes != 0 || !got.Found.IsZero() {
			t.Errorf("the state is %+v, want a new one", got)
		}
		other.found(e3)
		m.want(e3)
		if err := m.Apply(nil, func() error { return m.router.Apply(route.Config{}) }); err != nil || len(m.States()) != 0 {
			t.Errorf("no sources any more: %v, %+v", err, m.States())
		}
	})
}

// A source that ends, be it by a panic, is run again.
func TestManager_Restarts(t *testing.T) {
	var s *scripted
	manage(t, func(m *managed) { s = newScripted("a"); m.apply("default", s) }, func(m *managed) {
		f := func(want string, end func(Sink) error) {
			t.Helper()
			<-s.begun
			s.found(e1)
			m.lines.Reset()
			s.say <- end
			synctest.Wait()
			m.told(`msg="endpoints can't be discovered" pool=default source=a endpoints=1 effect="those found before stay" error=` + want)
			m.want(e1)
			bubble.Pass(restartWait - time.Second)
			if len(s.begun) != 0 {
				t.Error("run again at once")
			}
			bubble.Pass(time.Second)
		}
		f("broken", func(Sink) error { return errors.New("broken") })
		f(`"panic: ouch"`, func(Sink) error { panic("ouch") })
		<-s.begun
	})
}

package discover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// restartWait is how long after its failure a source is run again.
const restartWait = 10 * time.Second

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
func (r *running) Found(endpoints []route.Endpoint) { r.tell(r.take(endpoints, nil)) }

// Lost implements Sink.
func (r *running) Lost(err error) { r.tell(r.take(nil, err)) }

// Failed implements Sink.
func (r *running) Failed(err error) { r.tell(r.fail(err)) }

// news is what a report of the source has changed, for the log.
type news struct {
	State          // after it
	added, removed []string
	// effect is that of Err, where it is to be told; empty: it is not.
	effect string
	again  bool // Err was there, and is no more
	empty  bool // there are no endpoints, as was not told before
}

// What becomes of the endpoints that were found before.
const (
	stay = "those found before stay"
	none = "none is left"
)

// take has the router use endpoints. because is why there are none, nil where
// there may be.
func (r *running) take(endpoints []route.Endpoint, because error) (n news) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if !r.heard() {
		return n
	}
	if err := r.m.router.SetEndpoints(r.state.Pool, endpoints); err != nil {
		n.effect = r.note(err, stay)
		n.State = r.state
		return n
	}
	n.added, n.removed = missing(endpoints, r.current), missing(r.current, endpoints)
	if len(n.added)+len(n.removed) > 0 {
		r.state.Changes++
	}
	n.empty = len(endpoints) == 0 && (len(n.removed) > 0 || r.state.Found.IsZero())
	r.current, r.state.Endpoints, r.state.Found = endpoints, len(endpoints), time.Now()
	if because != nil {
		n.effect = r.note(because, none)
	} else {
		n.again = r.state.Err != nil
		r.state.Err = nil
	}
	r.m.noteSynced()
	n.State = r.state
	return n
}

func (r *running) fail(err error) (n news) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.heard() {
		n.effect = r.note(err, stay)
		n.State = r.state
	}
	return n
}

// heard tells whether what r says still counts. r.m.mu is held.
func (r *running) heard() bool { return r.m.running[r.state.Pool] == r }

// note notes an error, and returns its effect where that or the error is another
// than before. r.m.mu is held.
func (r *running) note(err error, effect string) (told string) {
	r.state.Failures++
	if r.state.Err == nil || r.state.Err.Error() != err.Error() || r.effect != effect {
		told = effect
	}
	r.state.Err, r.effect = err, effect
	return told
}

// maxTold is how many endpoints a line of the log names.
const maxTold = 10

// tell logs n. No lock is held: a log that stands still must not hold up who
// asks for states.
func (r *running) tell(n news) {
	log := r.m.log.With("pool", n.Pool, "source", n.Source, "endpoints", n.Endpoints)
	if len(n.added)+len(n.removed) > 0 {
		log.Info("endpoints", "added", len(n.added), "removed", len(n.removed),
			"added_first", n.added[:min(maxTold, len(n.added))], "removed_first", n.removed[:min(maxTold, len(n.removed))])
	}
	if n.effect != "" {
		log.Warn("endpoints can't be discovered", "effect", n.effect, "error", n.Err)
	}
	if n.again {
		log.Info("endpoints are discovered again")
	}
	if n.empty {
		log.Warn("the pool is empty", "effect", "its requests get 503")
	}
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

//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// largeScript answers with a stream of size bytes, 64 KiB an event.
func largeScript(name string, size int, gate <-chan struct{}) testkit.Script {
	s := chatScript(name, gate)
	first, last := s.Pieces[0], s.Pieces[2]
	text := s.Pieces[1]
	text.Data = []byte(strings.Replace(string(text.Data), "Hi", strings.Repeat("x", 64<<10), 1))
	s.Pieces = []testkit.Piece{first, text}
	text.After = nil
	for n := len(text.Data); n < size; n += len(text.Data) {
		s.Pieces = append(s.Pieces, text)
	}
	s.Pieces = append(s.Pieces, last)
	return s
}

// TestFrozenObserver stops the observer's process while a response of 40 MB
// streams: how much passes until Envoy stops reading, how much memory Envoy takes
// for it, how long it stands still, and that others do not.
func TestFrozenObserver(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	p := startPair(t, split, []int{0}, []int{1})
	observer := p.replicas[1].PID()
	t.Cleanup(func() { _ = syscall.Kill(observer, syscall.SIGCONT) })

	alive := p.mustPlay(t, largeScript("alive", size, nil), chatCall())
	before := p.allocated(t)
	frozen, done := make(chan struct{}), make(chan exchange, 1)
	s, call := largeScript("frozen", size, frozen), chatCall()
	var arrived atomic.Int64
	call.OnPiece = func(body []byte) {
		if len(body) == len(s.Pieces[0].Data) {
			p.stop(observer)
			close(frozen)
		}
		arrived.Store(int64(len(body)))
	}
	go func() {
		x, err := p.play(context.WithoutCancel(t.Context()), s, call)
		if err != nil {
			t.Error(err)
		}
		done <- x
	}()
	<-frozen
	passed, held := p.standstill(t, &arrived)
	held -= before
	small := p.mustPlay(t, chatScript("meanwhile", nil), chatCall())
	select {
	case <-done:
		t.Fatal("the response went on before the small exchange was over: it shows nothing")
	default:
	}
	stood := time.Now()
	x := <-done

	t.Logf("%d MB came in %v; with the observer frozen %d MB came, Envoy held %d MB, a small exchange took %v, and the rest came after %v more",
		size>>20, alive.EndAt.Round(time.Millisecond), passed>>20, held>>20, small.EndAt.Round(time.Millisecond), time.Since(stood).Round(time.Second))
	if x.Broken || !bytes.Equal(x.Body, s.Body()) {
		t.Errorf("%d of %d bytes, broken %t", len(x.Body), len(s.Body()), x.Broken)
	}
	if small.Broken {
		t.Error("the small exchange broke off")
	}
	if passed < 8<<20 || held > 64<<20 {
		t.Errorf("%d bytes came, Envoy held %d; want 8 MiB or more, 64 MiB at most", passed, held)
	}
	// What ends the standstill is Envoy's ping, which the observer does not answer.
	const pings = "cluster.inferspan_observe.http2.keepalive_timeout"
	if n, err := p.envoy.Stat(t.Context(), pings); err != nil || n == 0 {
		t.Errorf("%s is %d, %v; want 1 or more", pings, n, err)
	}
}

// standstill waits until nothing more arrives for a second, and returns how much
// did, and the most memory that Envoy had allocated.
func (e *edge) standstill(t *testing.T, arrived *atomic.Int64) (passed, most int64) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for still := 0; still < 20; still++ {
		<-tick.C
		most = max(most, e.allocated(t))
		if n := arrived.Load(); n != passed {
			passed, still = n, 0
		}
	}
	return passed, most
}

// allocated is how much memory Envoy has allocated.
func (e *edge) allocated(t *testing.T) int64 {
	t.Helper()
	page, err := e.envoy.Admin(t.Context(), "/memory")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Allocated int64 `json:"allocated,string"`
	}
	if err := json.Unmarshal(page, &m); err != nil {
		t.Fatal(err)
	}
	return m.Allocated
}

// TestShortExchanges has 400 short exchanges a second. Each leaves an observed
// stream open no longer than it takes, and none finds a circuit breaker open.
func TestShortExchanges(t *testing.T) {
	const rate, seconds = 400, 5
	e := startEdge(t, split)
	s, call := chatScript("short", nil), chatCall()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var wg sync.WaitGroup
	var failed atomic.Int64
	begun := time.Now()
	for range rate * seconds {
		<-tick.C
		wg.Go(func() {
			if x, err := e.play(t.Context(), s, call); err != nil || x.Status != http.StatusOK || x.Broken {
				failed.Add(1)
			}
		})
	}
	took := time.Since(begun)
	wg.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d exchanges failed", n)
	}
	for _, stat := range []string{"upstream_rq_pending_overflow", "upstream_cx_overflow", "upstream_rq_retry_overflow"} {
		for _, cluster := range []string{"inferspan_route", "inferspan_observe", "vllm"} {
			name := "cluster." + cluster + "." + stat
			if n, err := e.envoy.Stat(t.Context(), name); err != nil || n != 0 {
				t.Errorf("%s is %d, %v; want 0", name, n, err)
			}
		}
	}
	for _, filter := range stats(e.form) {
		if n, err := e.envoy.Stat(t.Context(), filter+"failure_mode_allowed"); err != nil || n != 0 {
			t.Errorf("%sfailure_mode_allowed is %d, %v; want 0", filter, n, err)
		}
	}
	wait(t, func() error {
		if n := counted(t, e.inferspan, "inferspan_requests_total", ""); n != rate*seconds {
			return fmt.Errorf("%v records, want %d", n, rate*seconds)
		}
		return nil
	})
	// On a machine that does not keep up, Envoy closes an observed stream before all
	// of it was read.
	t.Logf("%d exchanges in %v, %v of them seen to their end", rate*seconds, took.Round(10*time.Millisecond),
		counted(t, e.inferspan, "inferspan_requests_total", `inferspan_outcome="ok"`))
}

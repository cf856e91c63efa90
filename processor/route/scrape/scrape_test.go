package scrape

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/processor/route"
)

// fleet stands in for the servers and for the router. Its servers answer on
// scripted time.
type fleet struct {
	mu       sync.Mutex
	targets  []Target
	answers  map[string]func(context.Context) (status int, body string, err error) // by host and path
	asked    map[string][]time.Time                                                // by host and path
	signals  map[string][]route.Signals
	health   map[string][]bool
	failures map[string]int // by address and reason
	log      bytes.Buffer
}

func newFleet() *fleet {
	return &fleet{
		answers:  make(map[string]func(context.Context) (int, string, error)),
		asked:    make(map[string][]time.Time),
		signals:  make(map[string][]route.Signals),
		health:   make(map[string][]bool),
		failures: make(map[string]int),
	}
}

func (f *fleet) scraper() *Scraper {
	return New(Config{
		Targets: func() []Target {
			f.mu.Lock()
			defer f.mu.Unlock()
			return slices.Clone(f.targets)
		},
		Router: f,
		Failed: func(t Target, reason string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failures[t.Address+" "+reason]++
		},
		Logger:    slog.New(slog.NewTextHandler(&f.log, nil)),
		Transport: f,
	})
}

// run runs a scraper inside a bubble until play is over.
func (f *fleet) run(t *testing.T, play func(s *Scraper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := f.scraper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		play(s)
		cancel()
		<-ended
	})
}

func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.Host + r.URL.Path
	f.mu.Lock()
	f.asked[key] = append(f.asked[key], time.Now())
	answer := f.answers[key]
	f.mu.Unlock()
	if answer == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	status, body, err := answer(r.Context())
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (f *fleet) SetSignals(address string, s route.Signals) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signals[address] = append(f.signals[address], s)
}

func (f *fleet) SetHealthy(address string, healthy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.health[address] = append(f.health[address], healthy)
}

func (f *fleet) set(key string, status int, body string) {
	f.answer(key, func(context.Context) (int, string, error) { return status, body, nil })
}

func (f *fleet) answer(key string, a func(context.Context) (int, string, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[key] = a
}

func (f *fleet) serve(targets ...Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets = targets
}

// count returns how often a page was asked for, and forgets it.
func (f *fleet) count(key string) int {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.asked[key])
	delete(f.asked, key)
	return n
}

// said returns what the router was told of a server.
func (f *fleet) said(address string) ([]route.Signals, []bool) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.signals[address]), slices.Clone(f.health[address])
}

// lines returns the log, and forgets it.
func (f *fleet) lines() []string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for line := range strings.Lines(f.log.String()) {
		_, msg, _ := strings.Cut(line, "msg=")
		out = append(out, msg)
	}
	f.log.Reset()
	return out
}

const (
	a = "10.0.0.1:8000"
	b = "10.0.0.2:8000"
)

func metricsAt(address string) Target {
	return Target{Address: address, Metrics: Page{Interval: 200 * time.Millisecond, Timeout: time.Second, Path: "/metrics"}}
}

func healthAt(address string) Target {
	return Target{Address: address, Failures: 3, Health: Page{Interval: time.Second, Timeout: 5 * time.Second, Path: "/health"}}
}

func TestRun(t *testing.T) {
	f := newFleet()
	f.set(a+"/metrics", 200, "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\n")
	f.serve(metricsAt(a))
	f.run(t, func(*Scraper) {
		begin := time.Now()
		bubble.Pass(10 * time.Second)
		if n := f.count(a + "/metrics"); n != 50 {
			t.Errorf("asked %d times in 10 s, want 50", n)
		}
		signals, _ := f.said(a)
		for _, s := range signals {
			if s.At.Before(begin) || s.At.After(time.Now()) {
				t.Fatalf("signals of %v, between %v and now", s.At, begin)
			}
			s.At = time.Time{}
			if diff := cmp.Diff(route.Signals{Interval: 200 * time.Millisecond, Running: route.Some(3.), Waiting: route.Some(1.)}, s); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
		}
	})
	if len(f.signals[a]) != 50 || len(f.failures) != 0 || f.log.Len() != 0 {
		t.Errorf("%d signals, failures %v, log %s", len(f.signals[a]), f.failures, f.log.String())
	}
}

// Servers come, are asked in another way, and go.
func TestRun_Follows(t *testing.T) {
	f := newFleet()
	for _, key := range []string{a + "/metrics", b + "/metrics", "10.0.0.1:9100/m"} {
		f.set(key, 200, "vllm:num_requests_running 3\n")
	}
	f.run(t, func(s *Scraper) {
		f.serve(metricsAt(a))
		bubble.Pass(2 * time.Second)
		if f.count(a+"/metrics") == 0 {
			t.Error("a new server is not asked within 2 s")
		}
		f.serve(metricsAt(a), metricsAt(b))
		s.Refresh()
		bubble.Pass(time.Second)
		if na, nb := f.count(a+"/metrics"), f.count(b+"/metrics"); na != 5 || nb < 4 {
			t.Errorf("in a second, the old server was asked %d times and the new one %d times, want 5 each", na, nb)
		}
		other := metricsAt(a)
		other.Metrics.Port, other.Metrics.Path = 9100, "/m"
		f.serve(other)
		s.Refresh()
		synctest.Wait()
		f.count(a + "/metrics")
		f.count(b + "/metrics")
		bubble.Pass(2 * time.Second)
		if na, nb, n := f.count(a+"/metrics"), f.count(b+"/metrics"), f.count("10.0.0.1:9100/m"); na != 0 || nb != 0 || n < 9 {
			t.Errorf("asked %d and %d times as before and %d times as now", na, nb, n)
		}
		f.serve()
		s.Refresh()
		synctest.Wait()
		f.count("10.0.0.1:9100/m")
		bubble.Pass(time.Minute)
		if n := f.count("10.0.0.1:9100/m"); n != 0 {
			t.Errorf("a server that left was asked %d times", n)
		}
	})
}

// Many servers are not asked at one moment.
func TestRun_Spread(t *testing.T) {
	const servers, slots = 1000, 20
	f := newFleet()
	for i := range servers {
		address := fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250)
		f.targets = append(f.targets, metricsAt(address))
		f.set(address+"/metrics", 200, "")
	}
	var moments [slots]int
	f.run(t, func(*Scraper) {
		begin := time.Now()
		bubble.Pass(200 * time.Millisecond)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, times := range f.asked {
			moments[min(slots-1, int(times[0].Sub(begin)/(200*time.Millisecond/slots)))]++
		}
	})
	for _, n := range moments {
		if n < servers/slots/2 || n > servers/slots*2 {
			t.Fatalf("asked in each twentieth of the interval: %v, want some %d", moments, servers/slots)
		}
	}
}

// A server that takes its time is not asked again meanwhile, and keeps half of
// its time for itself.
func TestRun_Slow(t *testing.T) {
	f := newFleet()
	f.answer(a+"/metrics", func(ctx context.Context) (int, string, error) {
		select {
		case <-time.After(400 * time.Millisecond):
			return 200, "vllm:num_requests_running 3\n", nil
		case <-ctx.Done():
			return 0, "", ctx.Err()
		}
	})
	f.serve(metricsAt(a))
	f.run(t, func(*Scraper) {
		bubble.Pass(10 * time.Second)
		if n := f.count(a + "/metrics"); n != 20 {
			t.Errorf("asked %d times in 10 s, want 20: each answer takes 0.4 s and 0.1 s are free", n)
		}
	})
}

func TestRun_Failures(t *testing.T) {
	f := newFleet()
	f.serve(metricsAt(a))
	f.run(t, func(*Scraper) {
		bubble.Pass(time.Minute)
		if n := f.count(a + "/metrics"); n < 12 || n > 20 {
			t.Errorf("a server that can't be reached was asked %d times in a minute, want once in 5 s after the first few", n)
		}
		log := f.lines()
		if len(log) != 1 || !strings.Contains(log[0], "the metrics of an endpoint can't be read") || !strings.Contains(log[0], "connection refused") {
			t.Errorf("the log of a minute: %q", log)
		}
		f.set(a+"/metrics", 200, "vllm:num_requests_running 3\n")
		bubble.Pass(5 * time.Second)
		f.count(a + "/metrics")
		bubble.Pass(time.Second)
		if n := f.count(a + "/metrics"); n != 5 {
			t.Errorf("asked %d times in the second after its return, want 5", n)
		}
		if log := f.lines(); len(log) != 1 || !strings.Contains(log[0], "are read again") {
			t.Errorf("the log of the return: %q", log)
		}
		// One that comes late is no news.
		f.set(a+"/metrics", 500, "")
		bubble.Pass(200 * time.Millisecond)
		f.set(a+"/metrics", 200, "")
		bubble.Pass(time.Second)
		if log := f.lines(); len(log) != 1 || !strings.Contains(log[0], "says nothing of its load") {
			t.Errorf("the log of an empty page: %q", log)
		}
	})
}

func TestRun_FailureReasons(t *testing.T) {
	f := newFleet()
	f.set("10.0.0.1:1/metrics", 503, "")
	f.set("10.0.0.1:2/metrics", 200, strings.Repeat("vllm:num_requests_running 3\n", 1+maxPage/28))
	f.answer("10.0.0.1:3/metrics", func(ctx context.Context) (int, string, error) {
		<-ctx.Done()
		return 0, "", ctx.Err()
	})
	f.answer("10.0.0.1:4/metrics", func(context.Context) (int, string, error) { return 0, "", io.ErrUnexpectedEOF })
	f.set("10.0.0.1:5/metrics", 302, "")
	for _, port := range []string{"1", "2", "3", "4", "5", "6"} {
		f.targets = append(f.targets, metricsAt("10.0.0.1:"+port))
	}
	f.run(t, func(*Scraper) { bubble.Pass(2 * time.Second) })
	want := []string{"10.0.0.1:1 status", "10.0.0.1:2 broken", "10.0.0.1:3 timeout", "10.0.0.1:4 broken", "10.0.0.1:5 status", "10.0.0.1:6 unreachable"}
	if got := slices.Sorted(maps.Keys(f.failures)); !slices.Equal(got, want) {
		t.Errorf("failures %q, want %q", got, want)
	}
	if len(f.signals) != 0 {
		t.Errorf("signals of pages that could not be read: %v", f.signals)
	}
}

// A server without a page of metrics is no failure, and no news after the first.
// A fault of ours in one answer is that answer's.
func TestRun_Panic(t *testing.T) {
	f := newFleet()
	f.answer(a+"/metrics", func(context.Context) (int, string, error) { panic("injected") })
	f.answer(a+"/health", func(context.Context) (int, string, error) { panic("injected") })
	f.serve(metricsAt(a), healthAt(a))
	f.run(t, func(*Scraper) {
		bubble.Pass(10 * time.Second)
		if n := f.failures[a+" broken"]; n < failuresToTell {
			t.Errorf("%d failures, want %d or more", n, failuresToTell)
		}
		if log := strings.Join(f.lines(), ""); !strings.Contains(log, "panic: injected") || !strings.Contains(log, "scrape_test.go") {
			t.Errorf("the log is %q", log)
		}
		f.set(a+"/metrics", 200, "vllm:num_requests_running 3\n")
		bubble.Pass(10 * time.Second)
		if signals, _ := f.said(a); len(signals) == 0 {
			t.Error("it is not asked any more")
		}
	})
}

func TestRun_Absent(t *testing.T) {
	f := newFleet()
	f.set(a+"/metrics", 404, "{}")
	f.set(a+"/health", 404, "{}")
	target := healthAt(a)
	target.Metrics = metricsAt(a).Metrics
	f.serve(target)
	f.run(t, func(*Scraper) {
		bubble.Pass(time.Minute)
		if n := f.count(a + "/metrics"); n != 6 {
			t.Errorf("asked %d times in a minute, want 6", n)
		}
		if log := f.lines(); len(log) != 1 || !strings.Contains(log[0], "has no page of metrics") {
			t.Errorf("the log of a minute: %q", log)
		}
	})
	if len(f.failures) != 0 || len(f.signals) != 0 || slices.Contains(f.health[a], false) {
		t.Errorf("failures %v, signals %v, health %v", f.failures, f.signals, f.health)
	}
}

func TestRun_Health(t *testing.T) {
	f := newFleet()
	f.set(a+"/health", 200, "")
	f.serve(healthAt(a))
	f.run(t, func(s *Scraper) {
		last := func() bool {
			_, health := f.said(a)
			return health[len(health)-1]
		}
		bubble.Pass(2 * time.Second)
		if !last() {
			t.Fatal("a server that answers is unhealthy")
		}
		f.set(a+"/health", 503, "")
		bubble.Pass(2 * time.Second)
		if !last() {
			t.Error("unhealthy after two failures, want three")
		}
		bubble.Pass(time.Second)
		if last() {
			t.Error("healthy after three failures")
		}
		bubble.Pass(time.Minute)
		f.set(a+"/health", 200, "")
		bubble.Pass(time.Second)
		if !last() {
			t.Error("unhealthy a second after it answered again")
		}
		if log := f.lines(); len(log) != 2 || !strings.Contains(log[0], "is unhealthy") || !strings.Contains(log[1], "healthy again") {
			t.Errorf("the log: %q", log)
		}
		// Two failures are forgotten by an answer.
		for range 5 {
			f.set(a+"/health", 500, "")
			bubble.Pass(2 * time.Second)
			f.set(a+"/health", 429, "")
			bubble.Pass(time.Second)
		}
		if !last() {
			t.Error("unhealthy after failures that were not in a row")
		}
		f.answer(a+"/health", nil)
		bubble.Pass(3 * time.Second)
		if last() {
			t.Error("healthy without a connection")
		}
		// Who is not asked any more is not unhealthy for ever.
		f.serve(metricsAt(a))
		s.Refresh()
		if !last() {
			t.Error("unhealthy, and nobody will ask again")
		}
	})
}

func late(ctx context.Context) (int, string, error) {
	<-ctx.Done()
	return 0, "", ctx.Err()
}

func hangsUp(context.Context) (int, string, error) { return 0, "", io.EOF }

// A server that answers late is asked with patience.
func TestRun_HealthTimeout(t *testing.T) {
	f := newFleet()
	f.set(a+"/health", 200, "")
	f.serve(healthAt(a))
	f.run(t, func(*Scraper) {
		bubble.Pass(1500 * time.Millisecond)
		f.answer(a+"/health", late)
		bubble.Pass(15 * time.Second)
		if _, health := f.said(a); slices.Contains(health, false) {
			t.Errorf("health %v within three time-outs", health)
		}
		bubble.Pass(3 * time.Second)
		if _, health := f.said(a); health[len(health)-1] {
			t.Errorf("health %v after three time-outs, want unhealthy", health)
		}
	})
}

// What never answered may be what only we can't ask; who refuses is not there,
// and who says so is not well.
func TestRun_HealthNeverAnswered(t *testing.T) {
	f := newFleet()
	f.answer("10.0.0.1:1/health", late)
	f.answer("10.0.0.1:2/health", hangsUp)
	f.set("10.0.0.1:4/health", 503, "")
	f.set("10.0.0.1:5/health", 503, "")
	f.serve(healthAt("10.0.0.1:1"), healthAt("10.0.0.1:2"), healthAt("10.0.0.1:3"), healthAt("10.0.0.1:4"), healthAt("10.0.0.1:5"))
	f.run(t, func(*Scraper) {
		bubble.Pass(1500 * time.Millisecond)
		f.answer("10.0.0.1:5/health", hangsUp) // after its first answer
		bubble.Pass(time.Minute)
		for port, want := range map[string]bool{"1": true, "2": true, "3": false, "4": false, "5": false} {
			if _, health := f.said("10.0.0.1:" + port); slices.Contains(health, false) == want {
				t.Errorf("the server at port %s is said to be %v, want healthy %v", port, health, want)
			}
		}
		asked := 0
		for _, line := range f.lines() {
			if strings.Contains(line, "can't be asked for its health") {
				asked++
			}
		}
		if asked != 2 {
			t.Errorf("%d lines of servers that can't be asked, want 2", asked)
		}
	})
}

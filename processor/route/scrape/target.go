package scrape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

const (
	// failuresToTell is how often in a row a page of metrics has to fail until
	// the log tells: one that comes late is nothing to look at.
	failuresToTell = 3
	// A server that fails is asked less and less often, up to slowest; one that
	// has no page of metrics every absentInterval, for it may get a new version.
	slowest        = 5 * time.Second
	absentInterval = 10 * time.Second
	// maxDiscarded is how much of an answer that is not read is waited for.
	maxDiscarded = 64 << 10
)

// repeat calls ask until ctx ends; ask returns after what time it wants to be
// called again. The first time is anywhere in the interval, so that many servers
// are not asked at one moment.
func repeat(ctx context.Context, interval time.Duration, ask func(context.Context) time.Duration) {
	timer := time.NewTimer(rand.N(interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		next := ask(ctx)
		// The time that the answer took is part of the interval. A server that
		// takes longer still has half of its time to itself.
		timer.Reset(max(next/2, next-time.Since(began)))
	}
}

// metricsOf returns what asks for t's page of metrics once.
func (s *Scraper) metricsOf(t Target) func(context.Context) time.Duration {
	url := t.Metrics.url(t.Address)
	log := s.config.Logger.With("endpoint", t.Address, "url", url)
	failures, told, empty := 0, false, false
	return func(ctx context.Context) time.Duration {
		at := time.Now()
		signals, err := s.signals(ctx, url, t.Metrics.Timeout)
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, errAbsent):
			if failures = 0; !told {
				told = true
				log.Info("an endpoint has no page of metrics, its load is not known but for our own requests")
			}
			return max(absentInterval, t.Metrics.Interval)
		case err != nil:
			s.config.Failed(t, reasonOf(err))
			if failures++; failures == failuresToTell {
				told = true
				log.Warn("the metrics of an endpoint can't be read", "error", err, "failures", failures)
			}
			return min(t.Metrics.Interval<<min(failures, 10), max(slowest, t.Metrics.Interval))
		}
		if told {
			log.Info("the metrics of an endpoint are read again")
		}
		failures, told = 0, false
		nothing := !signals.Running.OK && !signals.Waiting.OK && !signals.KVUsage.OK
		if nothing && !empty {
			log.Info("an endpoint's page of metrics says nothing of its load", "wanted", "vllm:num_requests_running, vllm:num_requests_waiting, vllm:kv_cache_usage_perc")
		}
		empty = nothing
		signals.At, signals.Interval = at, t.Metrics.Interval
		s.config.Router.SetSignals(t.Address, signals)
		return t.Metrics.Interval
	}
}

// signals gets the page of metrics at url and reads it.
func (s *Scraper) signals(ctx context.Context, url string, timeout time.Duration) (signals route.Signals, err error) {
	err = s.get(ctx, url, timeout, func(ctx context.Context, status int, page io.Reader) (err error) {
		switch status {
		case http.StatusOK:
		case http.StatusNotFound:
			return errAbsent
		default:
			return statusError(status)
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return fmt.Errorf("waiting for others to be read: %w", ctx.Err())
		}
		signals, err = s.read(page)
		return err
	})
	return signals, err
}

func (s *Scraper) read(page io.Reader) (route.Signals, error) {
	r, ok := s.readers.Get().(*bufio.Reader)
	if !ok {
		r = bufio.NewReaderSize(nil, lineBytes)
	}
	defer s.readers.Put(r)
	defer r.Reset(nil)
	limited := &io.LimitedReader{R: page, N: maxPage}
	r.Reset(limited)
	signals, err := Read(r)
	if err == nil && limited.N == 0 {
		err = fmt.Errorf("the page has %d bytes or more", maxPage)
	}
	return signals, err
}

// healthOf returns what asks for t's page of health once. Failures are a status
// of 500 or more, and no answer; any other status is the answer of a server that
// is there, and may have no such page. A server that never answered may be one
// that we can't ask and Envoy can, for it wants TLS or the network is closed to
// us: it fails only by refusing the connection.
func (s *Scraper) healthOf(t Target) func(context.Context) time.Duration {
	url := t.Health.url(t.Address)
	log := s.config.Logger.With("endpoint", t.Address, "url", url)
	failures, answered, told := 0, false, false
	return func(ctx context.Context) time.Duration {
		err := s.health(ctx, url, t.Health.Timeout)
		_, isStatus := errors.AsType[statusError](err)
		switch {
		case ctx.Err() != nil:
			return 0
		case err == nil:
			if failures >= t.Failures {
				log.Info("an endpoint is healthy again")
			}
			failures, answered = 0, true
			s.config.Router.SetHealthy(t.Address, true)
		case answered || isStatus || errors.Is(err, syscall.ECONNREFUSED):
			answered = answered || isStatus
			failures++
			if failures == t.Failures {
				log.Warn("an endpoint is unhealthy", "error", err, "failures", failures)
			}
			if failures >= t.Failures {
				s.config.Router.SetHealthy(t.Address, false)
			}
		case !told:
			told = true
			log.Info("an endpoint can't be asked for its health", "error", err)
		}
		return t.Health.Interval
	}
}

func (s *Scraper) health(ctx context.Context, url string, timeout time.Duration) error {
	return s.get(ctx, url, timeout, func(_ context.Context, status int, _ io.Reader) error {
		if status >= http.StatusInternalServerError {
			return statusError(status)
		}
		return nil
	})
}

// get has use read the answer from url, within timeout. What a server answers
// must not end the process: a panic over it is an error.
func (s *Scraper) get(ctx context.Context, url string, timeout time.Duration, use func(context.Context, int, io.Reader) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Accept", "text/plain; version=0.0.4")
	request.Header.Set("User-Agent", "inferspan")
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	err = use(ctx, answer.StatusCode, answer.Body)
	// What is read to its end leaves a connection for the next.
	_, _ = io.CopyN(io.Discard, answer.Body, maxDiscarded)
	return err
}

// url is where the page of the server at address is.
func (p Page) url(address string) string {
	if p.Port != 0 {
		// The router's addresses are all ip:port.
		host, _, _ := net.SplitHostPort(address)
		address = net.JoinHostPort(host, strconv.Itoa(p.Port))
	}
	return "http://" + address + p.Path
}

// errAbsent tells that the server has no such page.
var errAbsent = errors.New("there is no such page")

type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the status is %d", int(e)) }

func reasonOf(err error) string {
	if _, ok := errors.AsType[statusError](err); ok {
		return FailedStatus
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return FailedUnreachable
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return FailedTimeout
	}
	return FailedBroken
}

// Package scrape asks the model servers how they are: how much they have to do,
// by their pages of metrics, and whether they can take requests, by their pages
// of health.
//
//	scrape.go   whom to ask: one owner, who follows the endpoints
//	target.go   one server: when it is asked, and what becomes of the answer
//	page.go     a page of metrics to signals
//	sample.go   one line of it
package scrape

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// Target is a server and how it is asked.
type Target struct {
	Pool    string // by which it is counted
	Address string // ip:port, where its requests go
	Metrics Page
	Health  Page
	// Failures is how often in a row Health has to fail until the server counts
	// as unhealthy.
	Failures int
}

// Page is one of a server's pages.
type Page struct {
	Interval time.Duration // 0: it is not asked for
	Timeout  time.Duration // for all of one answer
	Path     string
	Port     int // 0: that of the address
}

// Router is told what the servers say.
type Router interface {
	SetSignals(address string, s route.Signals)
	SetHealthy(address string, healthy bool)
}

// Config is what a Scraper works with.
type Config struct {
	// Targets returns the servers to ask, each address once. It is called every
	// second, and at Refresh.
	Targets func() []Target
	Router  Router
	// Failed takes each failure to read a page of metrics, by one of the reasons
	// below; nil: they are not counted.
	Failed func(t Target, reason string)
	Logger *slog.Logger
	// Transport gets the pages; nil: plain HTTP, without a proxy.
	Transport http.RoundTripper
}

// Why a page of metrics could not be read.
const (
	FailedTimeout     = "timeout"     // it did not come in time
	FailedUnreachable = "unreachable" // there was no connection
	FailedStatus      = "status"      // another status than 200
	FailedBroken      = "broken"      // it broke off, or was too large
)

const (
	// lookInterval is how often the targets are looked at.
	lookInterval = time.Second
	// dialTimeout is shorter than a page's own time: a host that is gone is known
	// before a server that is busy.
	dialTimeout = 2 * time.Second
	idleTimeout = 30 * time.Second
	// maxReading is how many pages are read at one time; it bounds memory by
	// that many times lineBytes. Servers that have not answered yet take no part
	// of it: none can keep the others waiting.
	maxReading = 64
	// lineBytes is the longest line of a page that is read.
	lineBytes = 32 << 10
	// maxPage is the largest page of metrics.
	maxPage = 8 << 20
)

// Scraper asks the targets until its end.
type Scraper struct {
	config  Config
	client  *http.Client
	refresh chan struct{}
	slots   chan struct{} // one for each page that is read now
	readers sync.Pool     // of *bufio.Reader
}

// New makes a Scraper; Run has it work.
func New(c Config) *Scraper {
	if c.Failed == nil {
		c.Failed = func(Target, string) {}
	}
	if c.Transport == nil {
		c.Transport = newTransport()
	}
	return &Scraper{
		config:  c,
		refresh: make(chan struct{}, 1),
		slots:   make(chan struct{}, maxReading),
		client: &http.Client{
			Transport:     c.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 2, // one for each page
		IdleConnTimeout:     idleTimeout,
		// The server would pay for it, on the thread that answers requests.
		DisableCompression:     true,
		MaxResponseHeaderBytes: lineBytes,
	}
}

// Refresh has the targets looked at now.
func (s *Scraper) Refresh() {
	select {
	case s.refresh <- struct{}{}:
	default: // it will be done
	}
}

// Run asks the targets until ctx ends, and returns when nothing of it is left.
func (s *Scraper) Run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	var asking sync.WaitGroup
	defer asking.Wait()
	// Before that wait, each is told to end: ctx is the parent of all.
	running := make(map[Target]context.CancelFunc)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		s.follow(ctx, running, &asking)
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-s.refresh:
		}
	}
}

// follow ends what is no target any more, and begins what is one now. A target
// that is asked in another way is another target.
func (s *Scraper) follow(ctx context.Context, running map[Target]context.CancelFunc, asking *sync.WaitGroup) {
	wanted := make(map[Target]bool)
	for _, t := range s.config.Targets() {
		wanted[t] = true
	}
	for t, end := range running {
		if !wanted[t] {
			end()
			delete(running, t)
		}
	}
	for t := range wanted {
		if running[t] != nil {
			continue
		}
		targetCtx, end := context.WithCancel(ctx)
		running[t] = end
		if t.Metrics.Interval > 0 {
			asking.Go(func() { repeat(targetCtx, t.Metrics.Interval, s.metricsOf(t)) })
		}
		if t.Health.Interval > 0 {
			asking.Go(func() { repeat(targetCtx, t.Health.Interval, s.healthOf(t)) })
		} else {
			// Nobody else would take back what was last found.
			s.config.Router.SetHealthy(t.Address, true)
		}
	}
}

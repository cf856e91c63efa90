package config

import (
	"errors"
	"net/url"
	"strings"
	"time"
)

// Scrape says how the servers of a pool are asked for their metrics, from which
// their load is read.
type Scrape struct {
	Enabled  bool          `yaml:"enabled"`
	Interval time.Duration `yaml:"interval" min:"50ms" max:"1s"`
	// Timeout is for the whole of one page.
	Timeout time.Duration `yaml:"timeout" min:"10ms" max:"1m"`
	Path    URLPath       `yaml:"path"`
	// Port is where the page is; 0: where requests go.
	Port int `yaml:"port" min:"0" max:"65535"`
}

// Health says how the servers of a pool are asked whether they can take
// requests.
type Health struct {
	Enabled  bool          `yaml:"enabled"`
	Interval time.Duration `yaml:"interval" min:"100ms" max:"1h"`
	// Timeout is for the whole of one answer.
	Timeout time.Duration `yaml:"timeout" min:"10ms" max:"1m"`
	Path    URLPath       `yaml:"path"`
	// Port is where the page is; 0: where requests go.
	Port int `yaml:"port" min:"0" max:"65535"`
	// Failures is how many in a row make a server unhealthy.
	Failures int `yaml:"failures" min:"1" max:"100"`
}

func (p *Pool) setDefaults() {
	p.policyDefaults()
	p.Scrape = Scrape{Enabled: true, Interval: 200 * time.Millisecond, Timeout: time.Second, Path: "/metrics"}
	p.Health = Health{Enabled: true, Interval: time.Second, Timeout: 5 * time.Second, Path: "/health", Failures: 3}
}

// URLPath is a path on a server, with a query where that is wanted.
type URLPath string

func (p *URLPath) parse(text string) error {
	u, err := url.ParseRequestURI(text)
	if err != nil || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "# ") || u.Host != "" {
		return errors.New("which is no path; allowed: a path with a / at its beginning, such as /metrics")
	}
	*p = URLPath(text)
	return nil
}

// Package config reads the configuration file of `inferspan serve`.
//
// The file is YAML and read strictly: a key that is not known, that is there
// twice or that has a value of the wrong type is a fault. All faults of a file
// are reported at once, each with its line, the path of its key, what is wrong
// and what is allowed. docs/configuration.md describes every key; a test holds
// it against the types of this package.
package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"
)

// Config is the whole configuration. The zero value of a field that may be left
// out is filled in by Default. The tag change:"live" marks what can change while
// the program runs.
type Config struct {
	// Listen is where ext_proc and gRPC health are served.
	Listen Listen `yaml:"listen"`
	// Admin is where metrics, health and lookups are served over HTTP.
	Admin HostPort `yaml:"admin"`
	// TLS protects Listen; nil: plain text.
	TLS *TLS `yaml:"tls"`
	// AdminTLS protects Admin; nil: plain text.
	AdminTLS *TLS `yaml:"admin_tls"`
	// DrainTimeout is how long streams may finish after the signal to stop.
	DrainTimeout time.Duration `yaml:"drain_timeout" min:"0s" change:"live"`
	Pools        []Pool        `yaml:"pools" change:"live"`
	Models       []Model       `yaml:"models" change:"live"`
	Kubernetes   Kubernetes    `yaml:"kubernetes"`
	Trace        Trace         `yaml:"trace"`
	Attributes   Attributes    `yaml:"attributes"`
	Metrics      Metrics       `yaml:"metrics"`
	SLO          []SLO         `yaml:"slo" change:"live"`
	Trusted      Trusted       `yaml:"trusted" change:"live"`
	Journal      Journal       `yaml:"journal"`
	Exchange     Exchange      `yaml:"exchange"`
	ExtProc      ExtProc       `yaml:"ext_proc"`
	Handover     Handover      `yaml:"handover" change:"live"`
	Request      Request       `yaml:"request"`
	Response     Response      `yaml:"response"`
	Usage        Usage         `yaml:"usage"`
	Record       Record        `yaml:"record"`
	Log          Log           `yaml:"log"`
}

// TLS names the files of the certificate that a server shows, and of those that
// it asks for.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ClientCA holds the authorities whose client certificates are accepted;
	// empty: clients need none.
	ClientCA string `yaml:"client_ca"`
}

// Pool is a set of interchangeable model servers.
type Pool struct {
	Name string `yaml:"name"`
	// Endpoints have distinct addresses. None: requests for the pool are
	// answered with 503.
	Endpoints []Endpoint `yaml:"endpoints"`
	// Discover says where else the endpoints are found; nil: they are Endpoints.
	Discover *Discover `yaml:"discover"`
	// Policy is by what one of them is picked.
	Policy string `yaml:"policy" one:"least-load prefix lora round-robin random"`
	// FallbackEndpoints is how many Envoy is told, in order: the one that is
	// picked, and those to try when it fails.
	FallbackEndpoints int `yaml:"fallback_endpoints" min:"1" max:"8"`
	// LoadBound is how much more an endpoint may have to do than the mean, before
	// the policies prefix and lora pass it over.
	LoadBound Factor `yaml:"load_bound"`
	// SlowStart is over how long an endpoint that comes or comes back gets its
	// share.
	SlowStart time.Duration `yaml:"slow_start" min:"0s" max:"1h"`
	// PanicThreshold is the share of endpoints that have to be fit; with fewer, all
	// are used.
	PanicThreshold Share  `yaml:"panic_threshold"`
	Eject          Eject  `yaml:"eject"`
	Scrape         Scrape `yaml:"scrape"`
	Health         Health `yaml:"health"`
	Shed           Shed   `yaml:"shed"`
}

// Trace is about spans: whose context they continue and how much they say.
type Trace struct {
	ClientContext   string `yaml:"client_context" one:"parent link ignore" change:"live"`
	ParentSampled   string `yaml:"parent_sampled" one:"respect ignore" change:"live"`
	UpstreamSampled string `yaml:"upstream_sampled" one:"head always" change:"live"`
	Detail          string `yaml:"detail" one:"off summary timeline events" change:"live"`
	// EngineSpans says whether the server's phases are child spans too.
	EngineSpans string      `yaml:"engine_spans" one:"off on" change:"live"`
	Events      string      `yaml:"events" one:"span log both"`
	ChunkEvents ChunkEvents `yaml:"chunk_events"`
	Keep        Keep        `yaml:"keep" change:"live"`
}

// Metrics says which metrics there are beside those that always are.
type Metrics struct {
	// Client is the form of the conventions' client metrics.
	Client string `yaml:"client" one:"off genai-0.1 1.41"`
}

// ChunkEvents bounds the chunk events of a span.
type ChunkEvents struct {
	Max int `yaml:"max" min:"1" max:"1024" change:"live"`
}

// Journal bounds the memory for finished records.
type Journal struct {
	MaxBytes Size `yaml:"max_bytes" min:"64KiB" max:"64GiB" change:"live"`
}

// Exchange is about the life of an exchange.
type Exchange struct {
	// IdleTimeout ends an exchange on which nothing came for so long.
	IdleTimeout time.Duration `yaml:"idle_timeout" min:"1s" change:"live"`
}

// ExtProc says what Envoy's filters are set to, where Envoy does not tell.
type ExtProc struct {
	// DeferredCloseTimeout is the filters' deferred_close_timeout: so much
	// later than its end an observed exchange that broke off is closed.
	DeferredCloseTimeout time.Duration `yaml:"deferred_close_timeout" min:"1ms" change:"live"`
	AssumeMode           AssumeMode    `yaml:"assume_mode"`
}

// AssumeMode is the filter's processing_mode, for Envoys that do not send it
// (those before protocol_config). Its keys and values are Envoy's own.
type AssumeMode struct {
	RequestBodyMode  string `yaml:"request_body_mode" one:"NONE BUFFERED BUFFERED_PARTIAL STREAMED FULL_DUPLEX_STREAMED" change:"live"`
	ResponseBodyMode string `yaml:"response_body_mode" one:"NONE BUFFERED BUFFERED_PARTIAL STREAMED FULL_DUPLEX_STREAMED" change:"live"`
}

// Request is about what is done with requests.
type Request struct {
	// HoldLimit is how much of one streamed request body is held until it can
	// be routed.
	HoldLimit Size `yaml:"hold_limit" min:"64KiB" max:"1GiB" change:"live"`
	// HoldTotal is how much of all of them is held at once.
	HoldTotal Size `yaml:"hold_total" min:"64KiB" max:"64GiB" change:"live"`
	// PoolHeader sets x-inferspan-pool, for Envoys with a route per pool.
	PoolHeader bool `yaml:"pool_header" change:"live"`
	// SessionHeaders name the conversation that a request is part of: the first of
	// them that it has.
	SessionHeaders []string `yaml:"session_headers" change:"live"`
}

// Response is about what is done with responses.
type Response struct {
	// Compression says whether compressed responses are decoded on a copy, or
	// prevented by what the model server is told to accept.
	Compression string `yaml:"compression" one:"decode prevent" change:"live"`
}

// Usage is about the usage of streams whose clients do not ask for it.
type Usage struct {
	// Ask says whether model servers are asked for it: where the answer can be
	// hidden from the client again, or also where the client then sees it.
	Ask string `yaml:"ask" one:"never auto always" change:"live"`
}

// Record is about exchanges that are written to files, as recordings.
type Record struct {
	// Dir is where they go; empty: none is recorded.
	Dir string `yaml:"dir"`
	// MaxBytes is how much they take together: the oldest give way.
	MaxBytes Size `yaml:"max_bytes" min:"1MiB" max:"1024GiB"`
	// Content says whether prompts, completions and their like are replaced by
	// filler.
	Content string `yaml:"content" one:"filler keep"`
	// Every is of how many exchanges one is recorded.
	Every int `yaml:"every" min:"1" max:"1000000"`
}

// Log is about the log on standard error.
type Log struct {
	Level  string `yaml:"level" one:"debug info warn error" change:"live"`
	Format string `yaml:"format" one:"json text"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Listen:       Listen{Network: "tcp", Address: "127.0.0.1:9002"},
		Admin:        "127.0.0.1:9464",
		DrainTimeout: 30 * time.Second,
		Trace: Trace{
			ClientContext:   "parent",
			ParentSampled:   "respect",
			UpstreamSampled: "head",
			Detail:          "events",
			EngineSpans:     "off",
			Events:          "span",
			ChunkEvents:     ChunkEvents{Max: 64},
			Keep:            Keep{Share: 1, Slow: Thresholds{TTFT: 5 * time.Second}},
		},
		Metrics:  Metrics{Client: "off"},
		Journal:  Journal{MaxBytes: 64 * mib},
		Exchange: Exchange{IdleTimeout: 30 * time.Minute},
		ExtProc: ExtProc{
			DeferredCloseTimeout: time.Second,
			AssumeMode:           AssumeMode{RequestBodyMode: "BUFFERED", ResponseBodyMode: "STREAMED"},
		},
		Request:  Request{HoldLimit: 16 * mib, HoldTotal: 256 * mib, SessionHeaders: []string{"x-session-id"}},
		Response: Response{Compression: "decode"},
		Usage:    Usage{Ask: "never"},
		Record:   Record{MaxBytes: 256 * mib, Content: "filler", Every: 1},
		Log:      Log{Level: "info", Format: "json"},
	}
}

// maxFile is the largest file that is read: a hundred thousand endpoints fit.
const maxFile = 4 * mib

// Load reads and checks the file. Its error is a *Error where the file could be
// read and has faults.
func Load(file string) (Config, error) {
	data, err := read(file)
	if err != nil {
		return Config{}, err
	}
	return Parse(file, data)
}

// Reload is Load while another configuration runs. An empty file is a fault then:
// it is one that is being written, or was not for want of room. A pipe can't be
// read a second time.
func Reload(file string) (Config, error) {
	if i, err := os.Stat(file); err == nil && !i.Mode().IsRegular() {
		return Config{}, fmt.Errorf("read the configuration: %s is no regular file, and can't be read anew", file)
	}
	data, err := read(file)
	if err != nil {
		return Config{}, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Config{}, newError(file, []Fault{{Problem: "is empty; allowed while a configuration runs: keys, {} for none of them"}}, nil)
	}
	return Parse(file, data)
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, int64(maxFile)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the configuration: %w", err)
	case len(data) > int(maxFile):
		return nil, fmt.Errorf("read the configuration: %s is larger than %s", file, maxFile)
	}
	return data, nil
}

// Parse is Load of a file that holds data; name stands for it in errors.
func Parse(name string, data []byte) (Config, error) {
	c := Default()
	d := decoder{lines: map[string]int{}}
	if d.document(data, &c) {
		d.faults = append(d.faults, besides(d.faults, c.validate())...)
	}
	if len(d.faults) > 0 {
		return Config{}, newError(name, d.faults, d.lines)
	}
	return c, nil
}

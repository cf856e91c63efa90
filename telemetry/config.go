package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// Config tells New what to do; the zero value takes the defaults. Where spans
// and metrics go is told by the OTEL_* variables alone.
type Config struct {
	// Version is the build's, for service.version and inferspan.build.info.
	Version string
	// Models are the configured model names: always named in metrics.
	Models []string
	// Pools are the configured pools' names: the same.
	Pools []string
	Trace TraceConfig
	SLOs  []SLO
	// ClientMetrics is the form of the GenAI conventions' client metrics: off (the
	// default), genai-0.1 or 1.41.
	ClientMetrics string
	// HeaderAttributes are what captured request headers become.
	HeaderAttributes []HeaderAttribute
	// Live returns the exchanges that have not ended; nil: none are shown.
	// It is called at each collection of metrics.
	Live func() []meter.Live
	// Endpoints returns those of the pools as they are now; nil: none are shown.
	// It is called at each collection of metrics.
	Endpoints func() []Endpoint
	// Discovery returns how it stands of each pool that is discovered; nil: none
	// is. It is called at each collection of metrics.
	Discovery func() []Discovery
	// ClockOffset returns how far Envoy's clock is behind ours, ok where that is
	// known; nil: it is not shown.
	ClockOffset func() (offset time.Duration, ok bool)

	Logger *slog.Logger // nil: slog.Default()
	// Getenv reads the environment; nil: os.Getenv. The SDK's exporters, limits
	// and readers read the variables that they know by themselves, from the
	// process's environment.
	Getenv func(string) string
}

// TraceConfig is the part of the configuration under trace.
type TraceConfig struct {
	// ClientContext says what a client's own trace context is to us: parent
	// (the default), link or ignore. Envoy's, where it comes, is the parent.
	ClientContext string
	// ParentSampled says whether a parent's sampled flag counts: respect (the
	// default) or ignore.
	ParentSampled string
	// UpstreamSampled says what flag the upstream sees: head (the default), the
	// head decision; or always.
	UpstreamSampled string
	// Detail is how much a span shows: off (attributes), summary (and
	// milestones), timeline (and the timeline), events (and chunks; the default).
	Detail string
	// ChunkMax is the most chunk events of a span; 0: 64, negative: none.
	ChunkMax int
	// EngineSpans makes child spans of the server's phases too.
	EngineSpans bool
	// Events says where events go: span (the default), log (log records over
	// OTLP, with the span's ids) or both.
	Events string
	Keep   KeepConfig
}

const (
	detailOff = iota
	detailSummary
	detailTimeline
	detailEvents
)

const (
	clientParent = "parent"
	clientLink   = "link"
	clientIgnore = "ignore"

	sampledRespect = "respect"
	sampledIgnore  = "ignore"

	upstreamHead   = "head"
	upstreamAlways = "always"

	eventsSpan = "span"
	eventsLog  = "log"
	eventsBoth = "both"

	defaultChunkMax = 64
)

// detailNames are the levels of detail, each with all that the ones before show.
var detailNames = []string{"off", "summary", "timeline", "events"}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Version == "" {
		c.Version = "unknown"
	}
	setDefault(&c.ClientMetrics, clientOff)
	t := &c.Trace
	setDefault(&t.ClientContext, clientParent)
	setDefault(&t.ParentSampled, sampledRespect)
	setDefault(&t.UpstreamSampled, upstreamHead)
	setDefault(&t.Detail, detailNames[detailEvents])
	setDefault(&t.Events, eventsSpan)
	if t.ChunkMax == 0 {
		t.ChunkMax = defaultChunkMax
	}
	t.ChunkMax = max(0, t.ChunkMax)
}

func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

func (c *Config) validate() error {
	t := c.Trace
	return errors.Join(
		oneOf("metrics.client", c.ClientMetrics, clientOff, clientGenAI, client141),
		oneOf("trace.client_context", t.ClientContext, clientParent, clientLink, clientIgnore),
		oneOf("trace.parent_sampled", t.ParentSampled, sampledRespect, sampledIgnore),
		oneOf("trace.upstream_sampled", t.UpstreamSampled, upstreamHead, upstreamAlways),
		oneOf("trace.detail", t.Detail, detailNames...),
		oneOf("trace.events", t.Events, eventsSpan, eventsLog, eventsBoth),
		t.Keep.validate(),
		sloList(c.SLOs).validate(),
	)
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q, allowed are %s", key, value, strings.Join(allowed, ", "))
}

package processor

import (
	"log/slog"
	"time"

	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// Config is what a Service works with. Telemetry and Router are needed; every
// other field has a default.
type Config struct {
	Telemetry Telemetry
	Router    Router
	Journal   Journal // nil: records are not kept
	// Record returns what takes an exchange that begins, nil for one that is not
	// to be recorded. nil: none is.
	Record func() Recording
	Logger *slog.Logger // nil: nothing is logged

	// AssumeRequest and AssumeResponse are the body modes of an Envoy that does
	// not say them and is not in observability mode, as Envoys before
	// protocol_config. ModeUnknown: BUFFERED requests, STREAMED responses.
	AssumeRequest, AssumeResponse wire.BodyMode
	// HoldLimit is the number of bytes of a FULL_DUPLEX_STREAMED request that
	// are held back until its model is known; beyond it the client gets 413.
	// 0: 16 MiB.
	HoldLimit int
	// HoldTotal is the number of bytes that are held back like that of all
	// requests together; beyond it those that can't be decided on get 503. At
	// least HoldLimit; 0: 256 MiB.
	HoldTotal int64
	// SessionHeaders are the request headers that name a conversation; of several
	// the first that is there counts. Without one the body's prompt_cache_key does.
	SessionHeaders []string
	// IdleTimeout ends a stream on which nothing comes; 0: 30 min.
	IdleTimeout time.Duration
	// DeferredClose is Envoy's deferred_close_timeout: by so much later than the
	// exchange's own end an unclean close comes in observe mode. 0: 1 s, as
	// deploy/ sets it.
	DeferredClose time.Duration
	// AccessLogWait is how long the record of an exchange that broke off waits for
	// Envoy's access log to tell why; 0: 2 s.
	AccessLogWait time.Duration
	// PoolHeader sets x-inferspan-pool on the request and has Envoy choose its
	// route again: for Envoys with one route per pool.
	PoolHeader bool
	// PreventCompression narrows the accept-encoding of requests to identity, so
	// that responses come without a content coding. Not in observe mode.
	PreventCompression bool
	// AskUsage has model servers asked for the usage of streams.
	AskUsage AskUsage
	// HandoverKey signs and verifies what the deciding filter of a split
	// deployment tells the observing one; empty: neither.
	HandoverKey handover.Key
	// Capture names request headers whose values go into the record.
	Capture []Capture
	// DropBaggage has the baggage of clients removed, which goes with a trace
	// context that is not continued.
	DropBaggage bool
	// Trusted says whose wishes count.
	Trusted Trusted
	// Meter tunes the measuring of each exchange.
	Meter meter.Options
	// Now is the clock; nil: time.Now. Its times need a monotonic reading where
	// the wall clock may be set.
	Now func() time.Time
}

const (
	defaultHoldLimit     = 16 << 20
	defaultHoldTotal     = 256 << 20
	defaultIdleTimeout   = 30 * time.Minute
	defaultDeferredClose = time.Second
)

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.AssumeRequest == wire.ModeUnknown {
		c.AssumeRequest = wire.ModeBuffered
	}
	if c.AssumeResponse == wire.ModeUnknown {
		c.AssumeResponse = wire.ModeStreamed
	}
	if c.HoldLimit == 0 {
		c.HoldLimit = defaultHoldLimit
	}
	if c.HoldTotal == 0 {
		c.HoldTotal = defaultHoldTotal
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.DeferredClose == 0 {
		c.DeferredClose = defaultDeferredClose
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

package telemetry

import (
	"math"
	"slices"
	"time"
)

// Kind is the kind of an instrument.
type Kind string

// The kinds.
const (
	Histogram        Kind = "histogram"
	Counter          Kind = "counter"
	Gauge            Kind = "gauge"
	ObservableUpDown Kind = "observable up-down counter"
)

// The units.
const (
	secondsUnit = "s"
	tokenUnit   = "{token}"
	requestUnit = "{request}"
	spanUnit    = "{span}"
	eventUnit   = "{event}"
)

// Metric is one entry of the catalogue: a metric that we export.
type Metric struct {
	Name        string
	Kind        Kind
	Unit        string
	Description string
	// Common tells that it carries the operation, provider, request model and
	// pool; Attributes are what it carries beside them.
	Common     bool
	Attributes []string
	// Headers tells that it carries the attributes that attributes.from_headers
	// has on metrics.
	Headers bool
	// Client is the value of metrics.client with which it is there; empty: it
	// always is.
	Client string
	// Buckets are a histogram's upper bounds, in Unit.
	Buckets []float64
}

// The buckets. Those of time to first token continue the conventions' for
// prompts that take minutes; those of the gaps begin at a millisecond, because
// tokens come a few milliseconds apart.
var (
	bucketsTTFT = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .15, .2, .25, .3, .4, .5, .75, 1, 1.5, 2, 2.5, 5, 7.5, 10, 15, 20, 30, 60, 120}
	bucketsTPOT = []float64{.001, .0025, .005, .0075, .01, .0125, .015, .02, .025, .03, .04, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	bucketsGap  = append(slices.Clone(bucketsTPOT), 5, 10, 30)

	bucketsDuration = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36, 1310.72}
	bucketsOverhead = []float64{1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, .1}
)

// The metrics.
var (
	mDuration = Metric{Name: metricServerDuration, Kind: Histogram, Unit: secondsUnit, Buckets: bucketsDuration,
		Description: "Time from the request's start to its end.",
		Common:      true, Attributes: []string{string(keyErrorType), string(keyOutcome)}}
	mTTFT = Metric{Name: metricServerTTFT, Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time to the first evidence of a generated token; every exchange that has one.",
		Common:      true}
	mTPOT = Metric{Name: metricServerTPOT, Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTPOT,
		Description: "Time per output token after the first, one sample a choice; exchanges that were done.",
		Common:      true, Attributes: []string{string(keyTokenCount)}}
	mITL = Metric{Name: "inferspan.inter_token_latency", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsGap,
		Description: "Time between two tokens of a choice; tokens that arrived together share the time before them.",
		Common:      true, Attributes: []string{string(keyTokenCount)}}
	mGap = Metric{Name: "inferspan.chunk_gap", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsGap,
		Description: "Time between two arrivals of tokens of a choice, however many tokens each brought.",
		Common:      true, Attributes: []string{string(keyTokenCount)}}
	mFirstByte = Metric{Name: "inferspan.time_to_first_byte", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time to the first byte of the response's body.", Common: true}
	mFirstEvent = Metric{Name: "inferspan.time_to_first_event", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time to the first event of the stream, whatever it says.", Common: true}
	mFirstAnswer = Metric{Name: "inferspan.time_to_first_answer_token", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time to the first token that is not reasoning.", Common: true}
	mNoFirstToken = Metric{Name: "inferspan.no_first_token", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "How long an exchange waited that ended without a first token.",
		Common:      true, Attributes: []string{string(keyReason)}}
	mRequests = Metric{Name: "inferspan.requests", Kind: Counter, Unit: requestUnit,
		Description: "Exchanges that ended.",
		Headers:     true,
		Common:      true, Attributes: []string{string(keyOutcome), string(keyHTTPStatus), string(keyStream)}}
	mActive = Metric{Name: "inferspan.request.active", Kind: ObservableUpDown, Unit: requestUnit,
		Description: "Exchanges that have not ended.", Common: true}
	mStreamActive = Metric{Name: "inferspan.stream.active", Kind: ObservableUpDown, Unit: requestUnit,
		Description: "Exchanges that have not ended and whose response is an event stream.", Common: true}
	mOutputTokens = Metric{Name: "inferspan.output_tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Generated tokens, by where their number comes from.",
		Headers:     true,
		Common:      true, Attributes: []string{string(keyUsageSource)}}
	mInputTokens = Metric{Name: "inferspan.input_tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Tokens of prompts, cached ones included, as the server reported them.",
		Headers:     true,
		Common:      true, Attributes: []string{string(keyUsageSource)}}
	mCachedTokens = Metric{Name: "inferspan.cached_input_tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Tokens of prompts that the server took from its cache.",
		Headers:     true,
		Common:      true, Attributes: []string{string(keyUsageSource)}}
	mReasoningTokens = Metric{Name: "inferspan.reasoning_output_tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Generated tokens that were reasoning, as the server reported them.",
		Headers:     true,
		Common:      true, Attributes: []string{string(keyUsageSource)}}
	mWasted = Metric{Name: "inferspan.wasted_tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Tokens that were computed for exchanges that failed or were cancelled: " +
			"stage decode, the tokens generated, estimates included; stage prefill, the prompt's tokens " +
			"less those from the cache, where the server reported them.",
		Headers: true,
		Common:  true, Attributes: []string{string(keyOutcome), string(keyStage)}}
	mOverhead = Metric{Name: "inferspan.processor.overhead", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsOverhead,
		Description: "Time that one message of Envoy took us, from having it to having answered it.",
		Attributes:  []string{string(keyPhase)}}
	mFaults = Metric{Name: "inferspan.processor.faults", Kind: Counter, Unit: "{fault}",
		Description: "What went wrong inside and was contained.",
		Attributes:  []string{string(keyReason)}}
	mQueued = Metric{Name: "inferspan.telemetry.queued", Kind: Counter, Unit: spanUnit,
		Description: "Spans that were accepted for export. Each is later sent, dropped or still waiting."}
	mSent = Metric{Name: "inferspan.telemetry.sent", Kind: Counter, Unit: spanUnit,
		Description: "Spans that a collector accepted."}
	mDropped = Metric{Name: "inferspan.telemetry.dropped", Kind: Counter, Unit: spanUnit,
		Description: "Spans that no collector accepted. Those with the reason queue_full were never queued.",
		Attributes:  []string{string(keyReason)}}
	mFolded = Metric{Name: "inferspan.telemetry.label.folded", Kind: Counter, Unit: "{value}",
		Description: "Label values that were replaced by " + otherValue + ".",
		Attributes:  []string{string(keyReason)}}
	mEventsSent = Metric{Name: "inferspan.telemetry.events.sent", Kind: Counter, Unit: eventUnit,
		Description: "Events that a collector accepted as log records."}
	mEventsDropped = Metric{Name: "inferspan.telemetry.events.dropped", Kind: Counter, Unit: eventUnit,
		Description: "Events that were made as log records and that no collector accepted.",
		Attributes:  []string{string(keyReason)}}
	mSkipped = Metric{Name: "inferspan.telemetry.parse.skipped", Kind: Counter, Unit: "{event}",
		Description: "Events that could not be read and were passed over, and one for a body whose content coding could not be taken off.", Common: true}
	mUnmatched = Metric{Name: "inferspan.telemetry.access_log.unmatched", Kind: Counter, Unit: "{entry}",
		Description: "Entries of Envoy's access log that settled no exchange: no_exchange, none of ours came within 10 s; late, its exchange had waited for 2 s, or found too many waiting; ambiguous, several fit; full, too many entries wait.",
		Attributes:  []string{string(keyReason)}}
	mUnseen = Metric{Name: "inferspan.telemetry.exchange.unseen", Kind: Counter, Unit: "{exchange}",
		Description: "Exchanges that Envoy's access log tells of and that passed without us: no stream of this process showed them, and no Inferspan put their span's id into their metadata. " +
			"Each is an unmatched entry, too (no_exchange). In observability mode an exchange that another Inferspan saw can't be told apart from one that none saw."}
	mConfigReloads = Metric{Name: "inferspan.config.reloads", Kind: Counter, Unit: "{reload}",
		Description: "Times that a part of the configuration was read anew and took effect: file, or the certificates of tls and admin_tls.",
		Attributes:  []string{string(keyReason)}}
	mConfigFailures = Metric{Name: "inferspan.config.failures", Kind: Counter, Unit: "{reload}",
		Description: "Times that a part of the configuration was read anew and could not take effect; what ran before runs on.",
		Attributes:  []string{string(keyReason)}}
	mConfigCurrent = Metric{Name: "inferspan.config.current", Kind: Gauge,
		Description: "1 while what runs is what the configuration says; 0 after a failure, or where a key waits for a restart."}
	mBuildInfo = Metric{Name: "inferspan.build.info", Kind: Gauge,
		Description: "1, with the version of this build.",
		Attributes:  []string{string(keyVersion), string(keyGoVersion)}}
)

// Metrics returns every metric that this package exports.
func Metrics() []Metric {
	return slices.Concat([]Metric{
		mDuration, mTTFT, mTPOT, mITL, mGap, mFirstByte, mFirstEvent, mFirstAnswer, mNoFirstToken,
		mRequests, mActive, mStreamActive,
		mOutputTokens, mInputTokens, mCachedTokens, mReasoningTokens, mWasted,
		mOverhead, mFaults, mQueued, mSent, mDropped, mFolded, mSkipped, mUnmatched, mUnseen,
		mEventsSent, mEventsDropped,
		mStreamTokens, mSilence,
		mStalls, mEngineQueue, mEnginePrefill, mEngineDecode, mChoices,
		mRouteDecisions, mRouteDuration, mAttempts,
		mSLORequests, mSLOTarget, mClockOffset,
		mConfigReloads, mConfigFailures, mConfigCurrent, mBuildInfo,
	}, endpointMetrics(), discoveryMetrics(), clientCatalogue())
}

// GapBounds returns the bucket bounds of the gap histograms, for the meter to
// sort gaps by: its buckets are then these metrics' buckets.
func GapBounds() []time.Duration {
	return durations(bucketsGap)
}

func durations(seconds []float64) []time.Duration {
	out := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		out[i] = time.Duration(math.Round(s * float64(time.Second)))
	}
	return out
}

package telemetry

// The metrics of what is known of an exchange beyond its times and tokens.
var (
	mStreamTokens = Metric{Name: "inferspan.stream.tokens", Kind: Counter, Unit: tokenUnit,
		Description: "Tokens of streams as they come, those of live streams included; where their number is not known, an event counts as one.",
		Common:      true}
	mSilence = Metric{Name: "inferspan.stream.silence", Kind: Gauge, Unit: secondsUnit,
		Description: "The longest time since the last token of a live stream; 0 where none is live.", Common: true}
	mStalls = Metric{Name: "inferspan.stream.stalls", Kind: Counter, Unit: "{stall}",
		Description: "Gaps between tokens that were out of all proportion.", Common: true}
	mEngineQueue = Metric{Name: "inferspan.engine.queue.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time in the server's queue, by its own account.", Common: true}
	mEnginePrefill = Metric{Name: "inferspan.engine.prefill.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT,
		Description: "Time of prefill, by the server's own account.", Common: true}
	mEngineDecode = Metric{Name: "inferspan.engine.decode.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsDuration,
		Description: "Time of decoding, by the server's own account.", Common: true}
	mChoices = Metric{Name: "inferspan.choices", Kind: Counter, Unit: "{choice}",
		Description: "Choices, by why they ended: as the server says, " + finishCut + " where one was cut, " + finishNone + " where it does not say.",
		Common:      true, Attributes: []string{string(keyFinishReason)}}
	mRouteDecisions = Metric{Name: "inferspan.route.decisions", Kind: Counter, Unit: "{decision}",
		Description: "Decisions where a request goes, rejections among them.",
		Common:      true, Attributes: []string{string(keyRouteReason)}}
	mRouteDuration = Metric{Name: "inferspan.route.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsOverhead,
		Description: "Time that a decision took.",
		Common:      true, Attributes: []string{string(keyRouteReason)}}
	mSLORequests = Metric{Name: "inferspan.slo.requests", Kind: Counter, Unit: requestUnit,
		Description: "Exchanges that count for an SLO, by whether they kept its promise.",
		Common:      true, Attributes: []string{string(keySLOName), string(keySLOMet)}}
	mSLOTarget = Metric{Name: "inferspan.slo.target", Kind: Gauge, Unit: "1",
		Description: "The part of the exchanges that is to keep the SLO's promise.",
		Attributes:  []string{string(keySLOName)}}
	mClockOffset = Metric{Name: "inferspan.envoy.clock_offset", Kind: Gauge, Unit: secondsUnit,
		Description: "How far Envoy's clock is behind ours, negative where it is ahead: the smallest time in the last minute from a request's start to its arrival here. Of several Envoys it is the one furthest off."}
	mAttempts = Metric{Name: "inferspan.upstream.attempts", Kind: Counter, Unit: "{attempt}",
		Description: "Tries of Envoy to have an exchange served, the first among them, where it tells their number.",
		Common:      true, Attributes: []string{string(keyRouteReason)}}
)

// What stands for a finish reason that did not come.
const (
	finishCut  = "error"
	finishNone = "none"
)

package telemetry

import "go.opentelemetry.io/otel/attribute"

// The GenAI semantic conventions' names, as of their standalone release 0.1.0.
// The SDK's generated packages no longer have them, and an update of the SDK
// must not rename a series, so they are pinned here.
const (
	keyOperation         attribute.Key = "gen_ai.operation.name"
	keyProvider          attribute.Key = "gen_ai.provider.name"
	keyRequestModel      attribute.Key = "gen_ai.request.model"
	keyRequestStream     attribute.Key = "gen_ai.request.stream"
	keyRequestMaxTokens  attribute.Key = "gen_ai.request.max_tokens"
	keyRequestChoices    attribute.Key = "gen_ai.request.choice.count"
	keyResponseModel     attribute.Key = "gen_ai.response.model"
	keyResponseID        attribute.Key = "gen_ai.response.id"
	keyFinishReasons     attribute.Key = "gen_ai.response.finish_reasons"
	keyFinishReason      attribute.Key = "gen_ai.response.finish_reason"
	keyTimeToFirstChunk  attribute.Key = "gen_ai.response.time_to_first_chunk"
	keyUsageInput        attribute.Key = "gen_ai.usage.input_tokens"
	keyUsageOutput       attribute.Key = "gen_ai.usage.output_tokens"
	keyUsageCacheRead    attribute.Key = "gen_ai.usage.cache_read.input_tokens"
	keyUsageReasoning    attribute.Key = "gen_ai.usage.reasoning.output_tokens"
	keyServerAddress     attribute.Key = "server.address"
	keyServerPort        attribute.Key = "server.port"
	keyErrorType         attribute.Key = "error.type"
	keyHTTPStatus        attribute.Key = "http.response.status_code"
	keyTokenModality     attribute.Key = "gen_ai.token.modality"
	keyTokenType         attribute.Key = "gen_ai.token.type" // of 1.41
	metricServerDuration               = "gen_ai.server.request.duration"
	metricServerTTFT                   = "gen_ai.server.time_to_first_token"
	metricServerTPOT                   = "gen_ai.server.time_per_output_token"
)

// Our own names.
const (
	keyRequestID       attribute.Key = "inferspan.request.id"
	keyOutcome         attribute.Key = "inferspan.outcome"
	keyUsageSource     attribute.Key = "inferspan.usage.source"
	keyOutputTokens    attribute.Key = "inferspan.output_tokens"
	keyFirstTokenKind  attribute.Key = "inferspan.first_token.kind"
	keyStartSource     attribute.Key = "inferspan.start.source"
	keyFirstByte       attribute.Key = "inferspan.time_to_first_byte"
	keyFirstEvent      attribute.Key = "inferspan.time_to_first_event"
	keySLOName         attribute.Key = "inferspan.slo.name"
	keySLOMet          attribute.Key = "inferspan.slo.met"
	keyFirstToken      attribute.Key = "inferspan.time_to_first_token"
	keyFirstAnswer     attribute.Key = "inferspan.time_to_first_answer_token"
	keyTPOT            attribute.Key = "inferspan.time_per_output_token"
	keyPool            attribute.Key = "inferspan.pool"
	keyEndpoint        attribute.Key = "inferspan.endpoint"
	keyServed          attribute.Key = "inferspan.served"
	keyRoutePolicy     attribute.Key = "inferspan.route.policy"
	keyRouteReason     attribute.Key = "inferspan.route.reason"
	keyRouteCandidates attribute.Key = "inferspan.route.candidates"
	keyRouteScore      attribute.Key = "inferspan.route.score"
	keyPredictedCached attribute.Key = "inferspan.route.predicted_cached_tokens"
	keySynthetic       attribute.Key = "inferspan.synthetic"
	keyAttempts        attribute.Key = "inferspan.attempts"
	keySentBytes       attribute.Key = "inferspan.sent_bytes"
	keyClientDrain     attribute.Key = "inferspan.client_drain.duration"
	keyKeepReason      attribute.Key = "inferspan.keep.reason"
	keyKeepProbability attribute.Key = "inferspan.keep.probability"
	keyEngineQueue     attribute.Key = "inferspan.engine.queue.duration"
	keyEnginePrefill   attribute.Key = "inferspan.engine.prefill.duration"
	keyEngineDecode    attribute.Key = "inferspan.engine.decode.duration"
	keyTimelineGaps    attribute.Key = "inferspan.timeline.gaps_100us"
	keyTimelineTokens  attribute.Key = "inferspan.timeline.tokens"
	keyTimelineStride  attribute.Key = "inferspan.timeline.stride"
	keyEventsThinned   attribute.Key = "inferspan.events.thinned"
	keyEventsDropped   attribute.Key = "inferspan.events.dropped"
	keyChunkIndex      attribute.Key = "inferspan.chunk.index"
	keyChunkChoice     attribute.Key = "inferspan.chunk.choice"
	keyChunkTokens     attribute.Key = "inferspan.chunk.tokens"
	keyChunkBytes      attribute.Key = "inferspan.chunk.bytes"
	keyChunkGap        attribute.Key = "inferspan.chunk.gap"
	keyTokenCount      attribute.Key = "inferspan.token_count"
	keyReason          attribute.Key = "inferspan.reason"
	keyStream          attribute.Key = "inferspan.stream"
	keyStage           attribute.Key = "inferspan.stage"
	keyPhase           attribute.Key = "inferspan.phase"
	keyVersion         attribute.Key = "inferspan.version"
	keyGoVersion       attribute.Key = "inferspan.go.version"
	keyServiceName     attribute.Key = "service.name"
	keyServiceVersion  attribute.Key = "service.version"
	keyServiceInstance attribute.Key = "service.instance.id"
)

// Values.
const (
	// provider is what the server is; the conventions leave the name of a
	// server that they don't list to us.
	provider = "vllm"
	// otherValue stands for what may not be named: a bounded label's surplus.
	otherValue = "_OTHER"

	countExact   = "exact"
	countAssumed = "assumed"
	stagePrefill = "prefill"
	stageDecode  = "decode"

	modalityText    = "text"
	modalityUnknown = "unknown"

	scopeName = "github.com/inferspan/inferspan"
)

package telemetry

import "go.opentelemetry.io/otel/attribute"

// Attribute is one entry of the catalogue: what a span, an event or a metric
// carries.
type Attribute struct {
	Name        string
	Type        string // string, int, double, boolean, string[], int[]
	Description string
}

// Event is one entry of the catalogue: a timestamped fact on the span.
type Event struct {
	Name        string
	Attributes  []string
	Description string
}

func attr(k attribute.Key, typ, description string) Attribute {
	return Attribute{Name: string(k), Type: typ, Description: description}
}

// SpanAttributes returns what the span of an exchange can carry, in the order
// of importance: a limit on their number drops the last.
func SpanAttributes() []Attribute {
	return []Attribute{
		attr(keyOperation, "string", "What was asked for: chat, text_completion, embeddings, or a value of our own for other paths."),
		attr(keyProvider, "string", "`"+provider+"`."),
		attr(keyRequestModel, "string", "The model as the client asked for it."),
		attr(keyOutcome, "string", "How the exchange ended; exactly one, on exactly one span of an exchange."),
		attr(keyErrorType, "string", "The status code, the server's error type, the outcome or our own reason, where the exchange failed."),
		attr(keyHTTPStatus, "int", "The response's status."),
		attr(keyRequestID, "string", "The request's `x-request-id`."),
		attr(keyResponseID, "string", "The id that the server gave the response."),
		attr(keyResponseModel, "string", "The model as the server named it."),
		attr(keyFinishReasons, "string[]", "By choice, why it ended; `error` where a choice was cut."),
		attr(keyRequestStream, "boolean", "Set where the client asked for a stream."),
		attr(keyRequestMaxTokens, "int", "The most tokens that the client wanted."),
		attr(keyRequestChoices, "int", "How many choices the client wanted, if not one."),
		attr(keyTimeToFirstChunk, "double", "The same as inferspan.time_to_first_token, by the conventions' name."),
		attr(keyUsageInput, "int", "Tokens of the prompt, as the server reported them."),
		attr(keyUsageOutput, "int", "Generated tokens; never an estimate."),
		attr(keyUsageCacheRead, "int", "Tokens of the prompt that came from the server's cache."),
		attr(keyUsageReasoning, "int", "Generated tokens that were reasoning, as the server reported them."),
		attr(keyUsageSource, "string", "Where the number of generated tokens comes from, `estimate` included."),
		attr(keyOutputTokens, "int", "Generated tokens, estimates included."),
		attr(keyFirstTokenKind, "string", "What the first token was: reasoning, content, tool_call, token or hidden."),
		attr(keyStartSource, "string", "Whose clock the start is: envoy or arrival."),
		attr(keyFirstByte, "double", "Seconds to the first byte of the response's body."),
		attr(keyFirstEvent, "double", "Seconds to the first event."),
		attr(keyFirstToken, "double", "Seconds to the first token."),
		attr(keyFirstAnswer, "double", "Seconds to the first token that is not reasoning."),
		attr(keyTPOT, "double", "Seconds per output token after the first, the mean over the choices; exchanges that were done."),
		attr(keyPool, "string", "The pool that was chosen."),
		attr(keyEndpoint, "string", "The endpoint that was chosen."),
		attr(keyServed, "string", "The endpoint that served, as Envoy reports it."),
		attr(keyServerAddress, "string", "The host of the endpoint that served, else of the chosen one."),
		attr(keyServerPort, "int", "Its port."),
		attr(keyRoutePolicy, "string", "The policy that chose."),
		attr(keyRouteReason, "string", "Why it chose so."),
		attr(keyRouteCandidates, "string[]", "The endpoints that it chose from, at most 8."),
		attr(keyRouteScore, "double", "What the endpoint would have cost the request when it was chosen, by how loaded it was: the less the better."),
		attr(keyPredictedCached, "int", "How many of the prompt's tokens the endpoint was thought to have in its cache."),
		attr(keyAttempts, "int", "How often Envoy tried."),
		attr(keySentBytes, "int", "Bytes of the response's body that Envoy sent to the client; where its access log told before the span ended."),
		attr(keyClientDrain, "double", "Seconds from the server's last byte to the last one that Envoy sent to the client; as above."),
		attr(keyKeepReason, "string", "Why this span was kept: forced, failed, slo_missed, slow, stalled or cancelled, the first that applies; else share, or all where everything is kept."),
		attr(keyKeepProbability, "double", "With the reason share: how likely an exchange that the head decision sampled was to be kept."),
		attr(keyEngineQueue, "double", "Seconds in the server's queue, by its own account."),
		attr(keyEnginePrefill, "double", "Seconds of prefill, by the server's own account."),
		attr(keyEngineDecode, "double", "Seconds of decoding, by the server's own account."),
		attr(keyTimelineGaps, "int[]", "The whole stream, all choices merged: gaps in units of 100 µs."),
		attr(keyTimelineTokens, "int[]", "The tokens that each of the gaps ended with."),
		attr(keyTimelineStride, "int", "How many arrivals one slot of the timeline holds."),
		attr(keyEventsThinned, "int", "Chunks that have no event, because a stream shows only some."),
		attr(keyEventsDropped, "int", "Other events that gave way to the SDK's limit."),
	}
}

// OtherAttributes returns what events and metrics carry beside what spans do.
func OtherAttributes() []Attribute {
	return []Attribute{
		attr(keySynthetic, "boolean", "On the child spans of the engine's phases: how long each took is the server's own account, when it began is ours."),
		attr(keyChunkIndex, "int", "The place of the chunk in its choice, from 0."),
		attr(keyChunkChoice, "int", "The choice."),
		attr(keyChunkTokens, "int", "The tokens in it, where known."),
		attr(keyChunkBytes, "int", "The bytes of the event."),
		attr(keyChunkGap, "double", "Seconds since the choice's last token."),
		attr(keyFinishReason, "string", "Why a choice ended."),
		attr(keyTokenCount, "string", "`exact` where the number of tokens is known, `assumed` where it was taken for one."),
		attr(keyTokenModality, "string", "`text`, or `unknown` where the prompt may hold anything, or no usage was reported."),
		attr(keyTokenType, "string", "`input` or `output`."),
		attr(keyReason, "string", "Why."),
		attr(keyStream, "boolean", "Whether the response was an event stream."),
		attr(keySLOName, "string", "The name of an SLO."),
		attr(keySLOMet, "boolean", "Whether the exchange kept its promise."),
		attr(keyStage, "string", "`prefill` or `decode`."),
		attr(keyPhase, "string", "The part of an exchange that a message carries."),
		attr(keyVersion, "string", "The version of this build."),
		attr(keyGoVersion, "string", "The Go version that built it."),
	}
}

// The events' names.
const (
	eventFirstByte   = "inferspan.first_byte"
	eventRole        = "inferspan.role"
	eventFirstToken  = "inferspan.first_token"
	eventFirstAnswer = "inferspan.first_answer_token"
	eventChunk       = "inferspan.chunk"
	eventStall       = "inferspan.stall"
	eventLastToken   = "inferspan.last_token"
	eventUsage       = "inferspan.usage"
	eventFinish      = "inferspan.finish"
	eventError       = "inferspan.error"
	eventCancelled   = "inferspan.cancelled"
)

// Events returns every event that a span can carry.
func Events() []Event {
	choice := string(keyChunkChoice)
	return []Event{
		{eventFirstByte, nil, "The first byte of the response's body."},
		{eventRole, []string{choice}, "The first event with a role."},
		{eventFirstToken, []string{choice, string(keyFirstTokenKind)}, "The first token; there exactly where there is a time to first token."},
		{eventFirstAnswer, []string{choice}, "The first token that is not reasoning."},
		{eventChunk, []string{string(keyChunkIndex), choice, string(keyChunkTokens), string(keyChunkBytes), string(keyChunkGap)}, "An event that brought tokens."},
		{eventStall, []string{choice, string(keyChunkGap)}, "The end of a gap that was out of all proportion."},
		{eventLastToken, []string{choice}, "The last token."},
		{eventUsage, nil, "The server's final account of tokens."},
		{eventFinish, []string{choice, string(keyFinishReason)}, "A choice ended."},
		{eventError, []string{string(keyErrorType)}, "An error inside the stream."},
		{eventCancelled, nil, "The client hung up."},
	}
}

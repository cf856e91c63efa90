package meter

import (
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// Opt is a value that may be absent. Absent is never zero: in JSON it is null.
// The zero Opt is absent.
type Opt[T any] struct {
	V  T
	OK bool
}

// Some returns the value v, present.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// Record is the finished account of one exchange. Everything exported derives
// from it. Field meanings: definitions in docs/definitions.md; times are
// offsets from Start, the origin.
type Record struct {
	// Name is the recording's name; empty for a live exchange.
	Name      string
	RequestID string
	Trace     Trace
	// Start is the origin; StartSource says whose clock it is.
	Start       time.Time
	StartSource StartSource

	// Wanted is what a trusted client wants of the exchange; 0: nothing.
	Wanted Thresholds
	// Captured are the request headers that the configuration asks for, by the
	// names that it gives them.
	Captured []Captured

	Method       string
	Path         string // without its query string
	Dialect      dialect.Dialect
	Asked        dialect.Request
	RequestModel Opt[string]
	Model        Opt[string]
	ResponseID   Opt[string]
	Status       int // 0 where no response came
	Outcome      Outcome
	// ErrorType is the error's type inside a 200 or a JSON error body, as the
	// server sent it, cut at 128 bytes; empty where there was none.
	ErrorType string
	Stream    bool
	Choices   int
	Finish    []Opt[string]

	PromptTokens    Opt[int64]
	CachedTokens    Opt[int64]
	ReasoningTokens Opt[int64]
	OutputTokens    Opt[int64]
	OutputSource    Source // empty where there is neither evidence nor a source

	FirstByte      Opt[time.Duration]
	FirstEvent     Opt[time.Duration]
	Role           Opt[time.Duration]
	FirstToken     Opt[time.Duration]
	FirstTokenKind Kind
	FirstAnswer    Opt[time.Duration]
	LastToken      Opt[time.Duration]
	LongestGap     Opt[time.Duration]
	Headers        Opt[time.Duration] // arrival of the response headers
	End            time.Duration
	// Sent is how many bytes of the body went to the client, and ClientDrain how
	// long after the last byte from the server the last one did, by Envoy's own
	// account; absent where its access log did not tell.
	Sent        Opt[int64]
	ClientDrain Opt[time.Duration]

	Events       int64
	Frames       int64
	SharedFrames int64
	KeepAlives   int64
	Bytes        int64
	// Skipped is how many events could not be read, and one for a body whose
	// content coding could not be taken off to its end; counted, never fatal.
	Skipped int64
	// EvidenceEvents is the number of evidence events by choice.
	EvidenceEvents []int64
	ServerMetrics  *ServerMetrics
	Route          Route

	// NoFirstToken says why a stream of a known dialect has no TTFT; empty
	// where it has one, or where none was to be expected.
	NoFirstToken NoTokenReason

	// ITL and Gap hold the inter-token latencies and chunk gaps by bucket
	// (definitions 3); TPOT one sample per choice.
	ITL     Gaps
	Gap     Gaps
	ITLVoid bool // usage exceeded the assumed count: the exchange gives no ITL
	TPOT    []TPOTSample
	Stalls  int

	// Marks are the milestones and the kept chunks, in time order.
	Marks        []Mark
	MarksThinned int64 // chunks that gave way as the stream grew
	Timeline     Timeline
}

// Captured is the value of a request header, as the client sent it.
type Captured struct{ Attribute, Value string }

// Trace is an exchange's place in a trace, decided when the request headers came.
type Trace struct {
	TraceID  [16]byte
	SpanID   [8]byte
	ParentID [8]byte // all zero: a root
	Sampled  bool    // the head decision
	// Forced: a trusted client asked for the trace to be kept.
	Forced bool
	// Detail is how much a trusted client asked the span to show, by the level's
	// number from 1; 0: as is configured.
	Detail uint8
	// UpstreamSampled is the sampled flag that the upstream is to see.
	UpstreamSampled bool
	// State is the tracestate to hand on, "" for none.
	State string
	// Link is the client's context where it is linked and not the parent.
	LinkTraceID [16]byte
	LinkSpanID  [8]byte
	LinkSampled bool   // the client's sampled flag
	LinkState   string // the client's tracestate, "" for none
}

// Route is where an exchange was sent, and why.
type Route struct {
	Pool, Endpoint, Served, Policy, Reason string
	Candidates                             []string // at most 8
	Attempts                               int      // 0: not known
	// Score is what Endpoint was picked for, in the policy's own measure: the
	// least cost.
	Score float64
	// PredictedCachedTokens is how many of the prompt's tokens Endpoint was thought
	// to have in its cache.
	PredictedCachedTokens Opt[int64]
	Start, Duration       time.Duration
}

// ServerMetrics is vLLM's own account of a request, milliseconds as it sends
// them; each can be absent.
type ServerMetrics struct {
	TimeToFirstTokenMS, GenerationTimeMS, QueueTimeMS, MeanITLMS, TokensPerSecond Opt[float64]
	// SpeculativeDecoding is what it says of that: the JSON of an object, or null;
	// "" where it says nothing, or too much to keep.
	SpeculativeDecoding string
}

// StartSource says whose clock the origin is.
type StartSource string

// The two origins.
const (
	StartEnvoy   StartSource = "envoy"
	StartArrival StartSource = "arrival"
)

// Source says where the number of output tokens comes from, strongest first.
type Source string

// The sources of output tokens.
const (
	SourceNone       Source = ""
	SourceUsage      Source = "usage"
	SourceContinuous Source = "continuous_usage"
	SourceTokenIDs   Source = "token_ids"
	SourceLogprobs   Source = "logprobs"
	SourceEstimate   Source = "estimate"
)

// Kind is the kind of a token: what the evidence for it was.
type Kind string

// The kinds of token evidence; KindNone where there was none.
const (
	KindNone      Kind = ""
	KindReasoning Kind = "reasoning"
	KindContent   Kind = "content"
	KindToolCall  Kind = "tool_call"
	KindToken     Kind = "token"
	KindHidden    Kind = "hidden"
)

// Outcome is how an exchange ended: exactly one of these.
type Outcome string

// The outcomes, in the order in which the first that applies is taken.
const (
	Rejected                   Outcome = "rejected"
	HTTPError                  Outcome = "http_error"
	ErrorInStream              Outcome = "error_in_stream"
	OK                         Outcome = "ok"
	OKNoFinish                 Outcome = "ok_no_finish"
	ClientCancelledAfterFinish Outcome = "client_cancelled_after_finish"
	ClientCancelled            Outcome = "client_cancelled"
	UpstreamReset              Outcome = "upstream_reset"
	Timeout                    Outcome = "timeout"
	Lost                       Outcome = "lost"
	Aborted                    Outcome = "aborted"
	Empty                      Outcome = "empty"
	Truncated                  Outcome = "truncated"
	Unparsed                   Outcome = "unparsed"
)

// Class groups outcomes by what they mean for span status, SLOs and waste.
type Class string

// The classes.
const (
	ClassDone      Class = "done"
	ClassCancelled Class = "cancelled"
	ClassFailed    Class = "failed"
	ClassRefused   Class = "refused"
	ClassRejected  Class = "rejected"
	ClassUnknown   Class = "unknown"
)

// Cause is how the caller saw an exchange end.
type Cause uint8

// The causes. Only CauseEnd is a clean end.
const (
	CauseEnd      Cause = iota // the response's end of stream was seen
	CauseAborted               // it broke off; nobody says whose fault
	CauseClient                // the client hung up
	CauseUpstream              // the upstream broke off
	CauseTimeout               // a timeout of Envoy's route or connection
	CauseLost                  // our view ended and the traffic went on
	CauseRejected              // we answered ourselves
)

// NoTokenReason says why there is no first token.
type NoTokenReason string

// The reasons.
const (
	NoTokenCancelled NoTokenReason = "cancelled"
	NoTokenAborted   NoTokenReason = "aborted"
	NoTokenError     NoTokenReason = "error"
	NoTokenReset     NoTokenReason = "upstream_reset"
	NoTokenTimeout   NoTokenReason = "timeout"
	NoTokenHidden    NoTokenReason = "hidden"
	NoTokenEmpty     NoTokenReason = "empty"
	NoTokenTruncated NoTokenReason = "truncated"
)

// Gaps is a bounded distribution of gaps: per bucket, how many samples and
// their sum, so that the mean of a bucket can stand for its samples and the
// total stays exact. Bucket i holds gaps ≤ Bounds()[i]; the last has no bound.
// Exact counts samples whose token count is known, Assumed the others.
type Gaps struct {
	Exact, Assumed []GapBucket
}

// GapBucket is one bucket of Gaps.
type GapBucket struct {
	Count int64
	Sum   time.Duration
}

// TPOTSample is the time per output token of one choice.
type TPOTSample struct {
	Value   time.Duration
	Assumed bool // a token count in it was assumed
}

// MarkKind is the kind of a mark: a milestone, or a chunk.
type MarkKind uint8

// The marks, named as the span events that they become.
const (
	MarkFirstByte MarkKind = iota
	MarkRole
	MarkFirstToken
	MarkFirstAnswer
	MarkChunk
	MarkStall
	MarkLastToken
	MarkUsage
	MarkFinish
	MarkError
	MarkCancelled
)

// Mark is one timestamped fact of an exchange.
type Mark struct {
	At     time.Duration
	Kind   MarkKind
	Choice int32
	Index  int32 // of the evidence event, from 0 in its choice; chunks only
	Tokens int32 // 0: not known
	Bytes  int32 // of the event
	Gap    time.Duration
}

// Timeline is the whole stream in at most 512 slots, all choices merged in
// time order: gaps in units of 100 µs and tokens, Stride instants a slot.
type Timeline struct {
	Gaps100us []int32
	Tokens    []int32
	Stride    int
}

// Milestone is a set of the moments that a call of Observe reached for the
// first time in its exchange.
type Milestone uint8

// The milestones.
const (
	ReachedFirstByte Milestone = 1 << iota
	ReachedFirstEvent
	ReachedFirstToken
	ReachedFirstAnswer
	ReachedDone // the stream's end mark
)

// Labels are what every metric of an exchange carries, known at its request,
// and what a milestone needs beside them.
type Labels struct {
	Operation string
	Model     string // as asked; "" where none was
	Pool      string
	// Endpoint is the one that serves it, or the chosen one where nobody says who
	// does; it is known with a milestone, and "" where neither is.
	Endpoint string
	// Status is the response's status, 0 where none came yet: a model that no
	// one configured is named in metrics only once a server accepted it.
	Status int
	// Trace is the exchange's place in a trace, for exemplars; nil: none.
	Trace *Trace
}

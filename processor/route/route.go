// Package route decides where a request goes: model name to targets, target to
// pool, pool to endpoint. It never names an endpoint that is not in the pool.
//
// One rule of the algorithm stands in one place: what we answer ourselves in
// Router.answer, which pool a request belongs to in Router.resolve, which of a
// model's targets takes it in entry.choose, who is refused while the pool is
// saturated in pool.refuse, which endpoint of the pool in Router.pick, and what a
// refused client is told in the functions of reject.go.
package route

// Request is what a decision needs to know.
type Request struct {
	Method   string
	Path     string
	Model    string
	HasModel bool
	// JSON tells that the body is a JSON object; a body that is not, or no
	// body at all, names no model. A model read from any other kind of body
	// (a multipart form) is routed by and never rewritten.
	JSON    bool
	HasBody bool
	// Subset limits the endpoints, port-exact; HasSubset tells an empty list
	// from none.
	Subset    []string
	HasSubset bool
	// Session names the conversation, by which it keeps its target and server;
	// empty: nothing does.
	Session string
	// Priority is what a trusted client asks for; below 0 a request may be
	// refused where the servers have enough to do.
	Priority int
	// Prefix are cumulative hashes of the prompt's leading blocks, the shortest
	// prefix first; nil where they were not read.
	Prefix []uint64
	// PromptBytes is how long the prompt is: as it was read, or by the announced
	// length of a body that is not all there; 0 where nothing is known.
	PromptBytes int
}

// Decision is where a request goes. Exactly one of Endpoint, Answer and Reject is
// set.
type Decision struct {
	Pool     string
	Endpoint string
	// Fallbacks are where Envoy tries next, in order, when Endpoint fails it.
	Fallbacks []string
	// Model is the name that the server is to see; empty where it stays as asked.
	Model  string
	Policy string
	Reason string
	// Score is the cost of Endpoint when it was picked: how loaded it is, compared
	// with others (see cost).
	Score float64
	// Tokens is the estimated number of prompt tokens that Endpoint has yet to read
	// for the request; 0 where nothing is known.
	Tokens int
	// PredictedCached is how many tokens of the prompt Endpoint is thought to have
	// in its cache.
	PredictedCached Opt[int64]
	// Candidates are the endpoints that came first, the chosen one and then
	// the next best; at most MaxCandidates.
	Candidates []string
	// Answer is our own, and no failure; Reject is one.
	Answer *Answer
	Reject *Rejection
}

// Load is what one exchange is to its endpoint while it lasts.
type Load struct {
	Endpoint string // ip:port; it need not be in a pool
	Tokens   int    // of the prompt, as estimated; 0 where nothing is known
}

// MaxCandidates is the number of endpoints that a Decision names at most.
const MaxCandidates = 8

// DefaultPool is the name of the pool that takes what no model entry names.
const DefaultPool = "default"

// The reasons of a Decision: how its pool was found, or why there is none.
const (
	ReasonModel   = "model"   // an entry names the model
	ReasonDefault = "default" // no entry names it: the pool `default` takes it
	ReasonUnnamed = "unnamed" // the request names no model: the pool `default` takes it

	ReasonModels = "models" // the list of models, or one of them: answered by us

	ReasonUnknownModel = "unknown_model" // 404: no entry, and no pool `default` or it was asked about
	ReasonNoModel      = "no_model"      // 400 or 404: no model, no pool `default`
	ReasonNoEndpoint   = "no_endpoint"   // 503: the pool is empty
	ReasonNotInSubset  = "not_in_subset" // 503: none of the pool is in the subset hint
	ReasonSaturated    = "saturated"     // 429: the pool has reached a limit of its Shed
)

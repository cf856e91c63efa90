// Package route decides where a request goes: model name to targets, target to
// pool, pool to endpoint. It never names an endpoint that is not in the pool.
package route

// Request is what a decision needs to know.
type Request struct {
	Path     string
	Model    string
	HasModel bool
	// JSON tells that the body is a JSON object; a body that is not, or no
	// body at all, names no model.
	JSON    bool
	HasBody bool
	// Subset limits the endpoints, port-exact; HasSubset tells an empty list
	// from none.
	Subset    []string
	HasSubset bool
}

// Decision is where a request goes. Exactly one of Endpoint and Reject is set.
type Decision struct {
	Pool     string
	Endpoint string
	// Model is the name that the server is to see; empty where it stays as asked.
	Model      string
	Policy     string
	Reason     string
	Candidates []string // at most 8
	Reject     *Rejection
}

// Rejection is an answer of our own, in OpenAI error form.
type Rejection struct {
	Status  int
	Reason  string // short, for labels and code details: no_endpoint, no_model ...
	Message string // for the client: what is wrong and what to do
	Type    string // OpenAI error type
	Param   string
}

// Package discover finds the endpoints of pools that are not configured one by
// one: in a file, or in DNS. Package kube beside it finds them in Kubernetes.
//
// A Source says what it finds and what goes wrong; the Manager runs the sources
// and has a route.Router use what they found. One rule holds for all of them:
// what was found stays until something else is found. Trouble with a source is
// reported and counted, and is no trouble for the traffic.
package discover

import (
	"context"

	"github.com/inferspan/inferspan/processor/route"
)

// Source is where the endpoints of one pool are found.
type Source interface {
	// String says what is looked for and where, for people. Sources with the
	// same String find the same endpoints, whatever their other settings.
	String() string
	// Run tells to what there is, at once and at each change, until ctx ends.
	// It returns before that only with an error, and is then called again.
	Run(ctx context.Context, to Sink) error
}

// Sink takes what a Source finds. Its methods may be called by several
// goroutines, one after the other.
type Sink interface {
	// Found has these endpoints used, and no others.
	Found(endpoints []route.Endpoint)
	// Lost has no endpoint used any more: there is none, and err says why.
	Lost(err error)
	// Failed says why it can't be told which endpoints there are. Those that
	// were found stay.
	Failed(err error)
}

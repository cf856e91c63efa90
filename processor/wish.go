package processor

import (
	"crypto/subtle"
	"strings"

	"github.com/inferspan/inferspan/processor/wire"
)

// wishHeader is what a trusted client asks of its exchange's trace.
const wishHeader = ownPrefix + "trace"

// Trusted says whose wishes about telemetry count: those of requests with the
// header Header, once, and Value as its value. It is a secret that clients and
// we share, or what Envoy sets after it took the clients' own copy away, as
// x-envoy-internal. The zero value trusts nobody.
type Trusted struct{ Header, Value string }

// trusts tells whether the request is one of the trusted. How long it takes
// says nothing about Value.
func (t Trusted) trusts(hs []wire.Header) bool {
	if t.Header == "" || t.Value == "" {
		return false
	}
	found, same := 0, 0
	for _, h := range hs {
		if strings.EqualFold(h.Name, t.Header) {
			found++
			same += subtle.ConstantTimeCompare([]byte(h.Value), []byte(t.Value))
		}
	}
	return found == 1 && same == 1
}

// wishOf is what the request asks of its trace, "" where it may not ask.
func (t Trusted) wishOf(hs []wire.Header) string {
	if !t.trusts(hs) {
		return ""
	}
	for _, h := range hs {
		if strings.EqualFold(h.Name, wishHeader) {
			return strings.Clone(h.Value)
		}
	}
	return ""
}

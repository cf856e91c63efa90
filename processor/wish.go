package processor

import (
	"crypto/subtle"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// What a trusted client asks of its exchange's trace, and how much its request
// matters beside others.
const (
	wishHeader     = ownPrefix + "trace"
	priorityHeader = ownPrefix + "priority"
)

// The headers in which a trusted client says within what times it wants its
// exchange, in milliseconds: ours, and those of inference gateways, new and old.
// The first that says a time counts.
var (
	ttftHeaders     = []string{ownPrefix + "slo-ttft-ms", "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"}
	tpotHeaders     = []string{ownPrefix + "slo-tpot-ms", "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"}
	durationHeaders = []string{ownPrefix + "slo-duration-ms"}
)

// Trusted says whose wishes count: those of requests with the header Header,
// once, and Value as its value. It is a secret that clients and we share, or what
// Envoy sets after it took the clients' own copy away, as x-envoy-internal. The
// zero value trusts nobody.
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

// wishes are what the request asks of its trace, within what times it wants its
// exchange, and its priority, 0 where it says none; nothing where it may not ask.
func (t Trusted) wishes(hs []wire.Header) (trace string, wanted meter.Thresholds, priority int) {
	if !t.trusts(hs) {
		return "", wanted, 0
	}
	trace = first(hs, wishHeader)
	wanted.TTFT, wanted.TPOT = milliseconds(hs, ttftHeaders), milliseconds(hs, tpotHeaders)
	wanted.Duration = milliseconds(hs, durationHeaders)
	if n, err := strconv.ParseInt(first(hs, priorityHeader), 10, 32); err == nil {
		priority = int(n)
	}
	return strings.Clone(trace), wanted, priority
}

// first is the value of the first header of the name, in any case; "" without one.
func first(hs []wire.Header, name string) string {
	for _, h := range hs {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// maxWanted is the longest time that is taken for one.
const maxWanted = 24 * time.Hour

// milliseconds is the time that the first of names says that says one, 0 where
// none does.
func milliseconds(hs []wire.Header, names []string) time.Duration {
	for _, name := range names {
		ms, err := strconv.ParseFloat(first(hs, name), 64)
		d := ms * float64(time.Millisecond)
		if err == nil && d >= 1 && d <= float64(maxWanted) {
			return time.Duration(math.Round(d))
		}
	}
	return 0
}

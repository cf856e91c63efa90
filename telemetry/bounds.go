package telemetry

import (
	"fmt"
	"strings"
)

// Stability is how far names and meanings hold: those of the conventions are in
// development by their own word, and ours until version 1.0.0. Up to then a minor
// version may change them, and the change log says so.
const Stability = "development"

// Convention returns the release of the GenAI conventions that the metric is of,
// "" where it is ours.
func (m Metric) Convention() string {
	switch {
	case m.Client != "":
		return m.Client
	case strings.HasPrefix(m.Name, "gen_ai."):
		return clientGenAI + ", " + client141
	}
	return ""
}

// Bounds returns what bounds the number of an attribute's values, for each attribute
// that metrics carry, by its name. Every value of each makes series.
func Bounds() map[string]string {
	upTo := func(n int) string { return fmt.Sprintf("the first %d, then `%s`", n, otherValue) }
	const (
		fixed      = "a fixed set"
		configured = "those of the configuration"
	)
	return map[string]string{
		string(keyOperation):     fixed + " by path, `other` among them",
		string(keyProvider):      "one",
		string(keyRequestModel):  fmt.Sprintf("those that the configuration names, and the first %d others that a server accepted, then `%s`", maxModels, otherValue),
		string(keyPool):          fmt.Sprintf("those of the configuration, and the first %d others that were handed over, then `%s`", maxPools, otherValue),
		string(keyEndpoint):      upTo(maxEndpoints) + "; a series ends 10 min after its endpoint left",
		string(keyErrorType):     upTo(maxErrorTypes),
		string(keyOutcome):       fixed,
		string(keyReason):        fixed + " of each metric",
		string(keyHTTPStatus):    "three digits, as servers answer",
		string(keyStream):        "two",
		string(keyTokenCount):    "two",
		string(keyUsageSource):   fixed,
		string(keyStage):         "two",
		string(keyFinishReason):  upTo(maxFinishReasons),
		string(keyRouteReason):   fixed,
		string(keySLOName):       configured + ", 50 at most, and `" + ownSLO + "`",
		string(keySLOMet):        "two",
		string(keyPhase):         fixed,
		string(keyTokenModality): "two",
		string(keyTokenType):     "two",
		string(keyVersion):       "one",
		string(keyGoVersion):     "one",
	}
}

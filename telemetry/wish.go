package telemetry

import (
	"slices"
	"strings"
)

// wishForce asks for the trace to be kept.
const wishForce = "force"

// parseWish reads what a trusted client asks: words with commas between, force
// and a level of detail, the last of which counts. Other words are passed over:
// they may mean something to a later version.
func parseWish(wish string) (forced bool, detail uint8) {
	for word := range strings.SplitSeq(wish, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		if word == wishForce {
			forced = true
		}
		if level := slices.Index(detailNames, word); level >= 0 {
			detail = uint8(level) + 1
		}
	}
	return forced, detail
}

// detail is how much the span shows.
func (e *entry) detail() int {
	if d := e.record.Trace.Detail; d > 0 {
		return int(d) - 1
	}
	return e.rules.show.detail
}

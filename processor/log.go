package processor

import (
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/inferspan/inferspan/processor/meter"
)

// maxLoggedID is the length of a request id in the log: a client can choose it.
const maxLoggedID = 128

// ids are what every line of log of the exchange has: the ids that its record
// and its span have.
func (x *exchange) ids() []any {
	t := &x.start.Trace
	if !traced(t) {
		return []any{"request_id", loggedID(x.start.RequestID)}
	}
	return []any{
		"request_id", loggedID(x.start.RequestID), "trace_id", traceID(t),
		"span_id", hex.EncodeToString(t.SpanID[:]), "trace_flags", traceFlags(t),
	}
}

func traceFlags(t *meter.Trace) string {
	if t.Sampled {
		return "01"
	}
	return "00"
}

func loggedID(id string) string {
	if len(id) > maxLoggedID {
		id = id[:maxLoggedID]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(id, string(unicode.ReplacementChar)))
}

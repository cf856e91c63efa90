package processor

import (
	"strings"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// maxCaptured is the most bytes that are kept of a captured header.
const maxCaptured = 256

// Capture is a request header whose value goes into the record.
type Capture struct {
	Header    string // in any case
	Attribute string // what it is called in the record
}

// captured returns what hs has of the headers cs, in the order of cs. Of a
// header that came several times it is the first.
func captured(cs []Capture, hs []wire.Header) []meter.Captured {
	var out []meter.Captured
	for _, c := range cs {
		for _, h := range hs {
			if strings.EqualFold(h.Name, c.Header) && h.Value != "" {
				value := strings.Clone(h.Value[:min(len(h.Value), maxCaptured)])
				out = append(out, meter.Captured{Attribute: c.Attribute, Value: value})
				break
			}
		}
	}
	return out
}

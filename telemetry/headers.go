package telemetry

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inferspan/inferspan/processor/meter"
)

// HeaderAttribute is an attribute whose value a request header has
// (meter.Record.Captured). It is on the span.
type HeaderAttribute struct {
	Name string
	// MaxValues is how many values are told apart on those metrics that carry
	// such attributes; 0: it is on none.
	MaxValues int
}

// headerAttributes are the values of header attributes that metrics may show.
type headerAttributes map[string]*boundedNames

func newHeaderAttributes(all []HeaderAttribute, before headerAttributes) (headerAttributes, error) {
	h, seen := make(headerAttributes), []string(nil)
	for _, a := range all {
		if a.Name == "" || slices.Contains(seen, a.Name) {
			return nil, fmt.Errorf("header attribute %q has no name, or one that another has", a.Name)
		}
		seen = append(seen, a.Name)
		if a.MaxValues <= 0 {
			continue
		}
		if h[a.Name] = before[a.Name]; h[a.Name] == nil || h[a.Name].max != a.MaxValues {
			h[a.Name] = newBoundedNames(a.MaxValues)
		}
	}
	return h, nil
}

// separator stands between what label joins: clean lets none through.
const separator = "\x00"

// label is what metrics show of captured headers, as one string by which it can
// be looked up. proven tells that the request was accepted: who is refused
// should not use up the values.
func (h headerAttributes) label(captured []meter.Captured, proven bool, folded func(string)) string {
	if len(h) == 0 {
		return ""
	}
	var b strings.Builder
	for _, c := range captured {
		values, ok := h[c.Attribute]
		if !ok {
			continue
		}
		value, why := values.get(c.Value, proven)
		if why != "" {
			folded(foldHeader)
		}
		b.WriteString(c.Attribute + separator + value + separator)
	}
	return b.String()
}

// appendLabel appends the attributes that label joined.
func appendLabel(kvs []attribute.KeyValue, label string) []attribute.KeyValue {
	for label != "" {
		var name, value string
		name, label, _ = strings.Cut(label, separator)
		value, label, _ = strings.Cut(label, separator)
		kvs = append(kvs, attribute.String(name, value))
	}
	return kvs
}

package telemetry

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxText is the most bytes of a string from outside on a span or a metric.
const maxText = 128

// clean returns s as it may go out: valid UTF-8 without control characters, at
// most maxText bytes.
func clean(s string) string {
	if len(s) <= maxText && isClean(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > maxText {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isClean(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// boundedNames admits names up to a number: a label whose values come from
// outside must not make series without end. It is safe for concurrent use.
type boundedNames struct {
	max int

	mu     sync.RWMutex
	pinned map[string]bool // always admitted
	names  map[string]bool // Invariant: len(names) <= max
}

func newBoundedNames(maxNames int, pinned ...string) *boundedNames {
	b := &boundedNames{max: maxNames, pinned: make(map[string]bool), names: make(map[string]bool)}
	for _, name := range pinned {
		b.pinned[clean(name)] = true
	}
	return b
}

// Why a name was folded.
const (
	foldUnproven = "model_unproven" // no server accepted it
	foldFull     = "limit"
	foldHeader   = "header" // of a header attribute, for either reason
)

// get returns name, cleaned, where it is known, or is proven and has room; else
// otherValue and the reason. The empty name stays empty.
func (b *boundedNames) get(name string, proven bool) (label, folded string) {
	name = clean(name)
	if name == "" || b.known(name) {
		return name, ""
	}
	if !proven {
		return otherValue, foldUnproven
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.names) >= b.max && !b.names[name] {
		return otherValue, foldFull
	}
	b.names[strings.Clone(name)] = true
	return name, ""
}

func (b *boundedNames) known(name string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.pinned[name] || b.names[name]
}

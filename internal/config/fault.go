package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	// Line is the line of the file, from 1; 0 where there is none to name.
	Line int
	// Path is the key's path, such as pools[0].endpoints[1]; empty where the
	// file as a whole is meant.
	Path string
	// Problem says what is wrong and what is allowed.
	Problem string
}

// Error is all that is wrong with one file, in the order of its lines.
type Error struct {
	File   string
	Faults []Fault
}

// newError gives each fault that has none the line of its key, or of the
// nearest key around it.
func newError(file string, faults []Fault, lines map[string]int) *Error {
	for i := range faults {
		f := &faults[i]
		for path := f.Path; f.Line == 0 && path != ""; path = parent(path) {
			f.Line = lines[path]
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{File: file, Faults: faults}
}

// parent cuts the last key or index off a path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// besides returns the faults of found that do not follow from those of known:
// what stands at or below a key that could not be read was never set.
func besides(known, found []Fault) []Fault {
	return slices.DeleteFunc(found, func(f Fault) bool {
		return slices.ContainsFunc(known, func(k Fault) bool {
			rest, below := strings.CutPrefix(f.Path, k.Path)
			return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}

// Lines returns the faults as text, one a line: FILE:LINE: KEY: PROBLEM.
func (e *Error) Lines() []string {
	out := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		out[i] = f.text(e.File)
	}
	return out
}

// Error returns Lines as one text.
func (e *Error) Error() string { return strings.Join(e.Lines(), "\n") }

func (f Fault) text(file string) string {
	var b strings.Builder
	b.WriteString(file)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path)
		b.WriteString(": ")
	}
	b.WriteString(f.Problem)
	return b.String()
}

package meter

import (
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// choices are the choices of a response. Most have one.
type choices struct {
	// all is by index; nil where an index was never named.
	all []*choice
	one choice
	// unread: some can't be followed, because of their index.
	unread bool
}

// choice is the state of one choice.
type choice struct {
	named    bool // an event named it before
	echoed   bool // its echo is over: it came, or a token came first
	events   int64
	lastAt   time.Duration // of its last evidence; meaningless where events is 0
	finish   Opt[string]
	finishAt time.Duration
	// resumed: a token came behind the finish, which ended only a segment.
	resumed bool

	usage    choiceUsage
	ids      tokenIDs
	logprobs tokenSum
	estimate int64
	calls    calls

	// first is its first instant, current its last; equal while there is one.
	// lastGap is the time before current, where there are two or more.
	first, current instant
	instants       int64
	lastGap        time.Duration
	pace           pace
}

// get returns the choice with that index, which is at most dialect.MaxChoices.
func (cs *choices) get(index int) *choice {
	for len(cs.all) <= index {
		cs.all = append(cs.all, nil)
	}
	if cs.all[index] == nil {
		cs.all[index] = cs.alloc()
	}
	return cs.all[index]
}

// alloc returns a new choice; the first is a part of the Meter.
func (cs *choices) alloc() *choice {
	for _, c := range cs.all {
		if c != nil {
			return new(choice)
		}
	}
	return &cs.one
}

// finishes takes the choice's finish reason; a later one replaces it.
func (c *choice) finishes(at time.Duration, reason dialect.Text) {
	c.finish, c.finishAt = Some(finishReason(reason)), at
	c.resumed = false
}

// finishReason returns the usual ones without allocating.
func finishReason(t dialect.Text) string {
	switch string(t) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	}
	return t.Decode(maxFinish)
}

const maxFinish = 128

// finished tells whether every choice that was named has finished; no choice,
// no finish.
func (cs *choices) finished() bool {
	named := false
	for _, c := range cs.all {
		if c == nil {
			continue
		}
		if !c.finish.OK || c.resumed {
			return false
		}
		named = true
	}
	return named
}

// anyFinished tells whether one has.
func (cs *choices) anyFinished() bool {
	for _, c := range cs.all {
		if c != nil && c.finish.OK {
			return true
		}
	}
	return false
}

// finishes returns one entry for each choice, absent where none came.
func (cs *choices) finishes() []Opt[string] {
	list := make([]Opt[string], len(cs.all))
	for i, c := range cs.all {
		if c != nil {
			list[i] = c.finish
		}
	}
	return list
}

// evidenceEvents returns the number of evidence events by choice.
func (cs *choices) evidenceEvents() []int64 {
	list := make([]int64, len(cs.all))
	for i, c := range cs.all {
		if c != nil {
			list[i] = c.events
		}
	}
	return list
}

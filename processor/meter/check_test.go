package meter

import (
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// check fails where the meter's state is not as its fields promise.
func (m *Meter) check(t *testing.T) {
	t.Helper()
	must := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Fatalf("invariant broken: %s", what)
		}
	}
	notBefore := func(a, b Opt[time.Duration]) bool { return !b.OK || a.OK && a.V <= b.V }
	c := &m.clocks
	must("first byte <= first event", notBefore(c.firstByte, c.firstEvent))
	must("first event <= role", notBefore(c.firstEvent, c.role))
	must("first event <= first token", notBefore(c.firstEvent, c.firstToken))
	must("first token <= first answer", notBefore(c.firstToken, c.firstAnswer))
	must("first answer <= last token", !c.firstAnswer.OK || notBefore(c.firstAnswer, c.lastToken))
	must("a first token has a kind", c.firstToken.OK == (c.firstKind != KindNone))
	must("a first token has a last", c.firstToken.OK == c.lastToken.OK)
	r := &m.response
	must("parser or body", r.parser == nil || r.body == nil)
	must("shared <= frames <= bytes", r.shared <= r.frames && r.frames <= r.bytes)
	must("skipped <= events", r.skipped <= r.events)
	must("choices are bounded", len(m.choices.all) <= dialect.MaxChoices)

	var events, closed int64
	for _, ch := range m.choices.all {
		if ch == nil {
			continue
		}
		events += ch.events
		must("an instant for an event", (ch.instants > 0) == (ch.events > 0) && ch.instants <= ch.events)
		must("the last instant is the last evidence", ch.events == 0 || ch.current.at == ch.lastAt)
		must("first instant <= last", ch.first.at <= ch.current.at)
		must("one instant is first and last", ch.instants != 1 || ch.first == ch.current)
		must("an instant has tokens", ch.instants == 0 || ch.current.unknown || ch.current.tokens > 0)
		must("the estimate has every evidence event", ch.estimate >= ch.events)
		closed += max(ch.instants-2, 0)
	}
	must("a token at least for an event", m.gaps.counted >= events)
	must("a chunk gap for each closed instant but the first", samples(m.gaps.gap) == closed)
	must("a sample or more for each", samples(m.gaps.itl) >= closed)
	if tape := m.tape; tape != nil {
		must("every event was offered to the tape", tape.total == events)
		limit := m.options.MaxChunks
		if limit <= 0 {
			limit = defaultChunks
		}
		must("marks are bounded", tape.chunks.n <= limit && len(tape.others) <= maxOtherMarks)
		line := &tape.line
		must("slots are bounded", line.slots <= maxSlots && line.inLast <= line.stride)
		var tokens int64
		for _, n := range line.result().Tokens {
			tokens += int64(n)
		}
		must("the timeline has every token", tokens == m.gaps.counted || m.gaps.counted >= 1<<31-1)
	}
}

func samples(g Gaps) int64 {
	var n int64
	for _, b := range append(append([]GapBucket(nil), g.Exact...), g.Assumed...) {
		n += b.Count
	}
	return n
}

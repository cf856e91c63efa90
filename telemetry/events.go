package telemetry

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/inferspan/inferspan/processor/meter"
)

// eventReserve is the room that chunks leave for the other events.
const eventReserve = 16

// ordinaryChunks is the number of chunk events of an exchange with nothing to
// explain.
const ordinaryChunks = 16

// effectiveChunkMax is the most chunk events that can be shown under the SDK's
// limit of events, negative for none.
func effectiveChunkMax(configured, limit int) int {
	if limit < 0 {
		return configured
	}
	return max(0, min(configured, limit-eventReserve))
}

type event struct {
	at         time.Duration
	name       string
	attributes []attribute.KeyValue
}

// milestones orders the kinds of marks by how much is lost without them: where
// the SDK's limit has no room for all, the last go first.
var milestones = []meter.MarkKind{
	meter.MarkFirstToken, meter.MarkLastToken, meter.MarkError, meter.MarkCancelled, meter.MarkFirstByte,
	meter.MarkFirstAnswer, meter.MarkFinish, meter.MarkStall, meter.MarkUsage, meter.MarkRole,
}

// events returns the span's events in time order, never more than the SDK's
// limit; thinned is the number of chunks without an event, dropped that of
// other marks. Chunks are all shown where e is detailed: there is something to
// explain.
func (m *spanMaker) events(e entry) (events []event, thinned, dropped int64) {
	r, detail := e.record, e.detail()
	if detail == detailOff {
		return nil, 0, 0
	}
	marks, chunks := splitMarks(r)
	if room := m.maxEvents; room >= 0 && len(marks) > room {
		dropped = int64(len(marks) - room)
		marks = mostTelling(marks, room)
	}
	if detail == detailEvents {
		shown := thin(chunks, m.chunkRoom(e, len(marks)))
		thinned = r.MarksThinned + int64(len(chunks)-len(shown))
		marks = append(marks, shown...)
		slices.SortStableFunc(marks, byTime)
	}
	events = make([]event, 0, len(marks))
	for _, k := range marks {
		events = append(events, newEvent(r, k))
	}
	return events, thinned, dropped
}

// byTime orders marks as they happened. In one instant, which a whole stream can
// be, the chunks come after what begins and before what ends.
func byTime(a, b meter.Mark) int {
	return cmp.Or(
		cmp.Compare(a.At, b.At),
		cmp.Compare(cmp.Compare(a.Kind, meter.MarkChunk), cmp.Compare(b.Kind, meter.MarkChunk)),
	)
}

// splitMarks returns the record's milestones and its chunks. The first token's
// milestone is there exactly where there is a time to first token.
func splitMarks(r *meter.Record) (milestones, chunks []meter.Mark) {
	milestones = make([]meter.Mark, 0, eventReserve)
	first := false
	for _, k := range r.Marks {
		switch {
		case k.Kind == meter.MarkChunk:
			chunks = append(chunks, k)
			continue
		case k.Kind == meter.MarkFirstToken && (first || !r.FirstToken.OK):
			continue
		case k.Kind == meter.MarkFirstToken:
			first = true
		}
		milestones = append(milestones, k)
	}
	if r.FirstToken.OK && !first {
		milestones = append(milestones, meter.Mark{At: r.FirstToken.V, Kind: meter.MarkFirstToken})
		slices.SortStableFunc(milestones, byTime)
	}
	return milestones, chunks
}

// mostTelling returns the n of marks that say most, in time order.
func mostTelling(marks []meter.Mark, n int) []meter.Mark {
	kept := slices.Clone(marks)
	slices.SortStableFunc(kept, func(a, b meter.Mark) int {
		return slices.Index(milestones, a.Kind) - slices.Index(milestones, b.Kind)
	})
	kept = kept[:n]
	slices.SortStableFunc(kept, byTime)
	return kept
}

// chunkRoom is how many chunks the span shows beside so many milestones.
func (m *spanMaker) chunkRoom(e entry, milestones int) int {
	n := effectiveChunkMax(e.rules.show.chunkMax, m.maxEvents)
	if !e.detailed {
		n = min(n, ordinaryChunks)
	}
	if m.maxEvents >= 0 {
		n = min(n, m.maxEvents-milestones)
	}
	return max(0, n)
}

// thin returns n of chunks, evenly spread, the first and the last among them.
func thin(chunks []meter.Mark, n int) []meter.Mark {
	if len(chunks) <= n {
		return chunks
	}
	if n <= 1 {
		return chunks[:n]
	}
	kept := make([]meter.Mark, n)
	for i := range kept {
		kept[i] = chunks[i*(len(chunks)-1)/(n-1)]
	}
	return kept
}

// markEvents are the names of marks as events.
var markEvents = [...]string{
	meter.MarkFirstByte:   eventFirstByte,
	meter.MarkRole:        eventRole,
	meter.MarkFirstToken:  eventFirstToken,
	meter.MarkFirstAnswer: eventFirstAnswer,
	meter.MarkChunk:       eventChunk,
	meter.MarkStall:       eventStall,
	meter.MarkLastToken:   eventLastToken,
	meter.MarkUsage:       eventUsage,
	meter.MarkFinish:      eventFinish,
	meter.MarkError:       eventError,
	meter.MarkCancelled:   eventCancelled,
}

func newEvent(r *meter.Record, k meter.Mark) event {
	e := event{at: k.At, name: markEvents[k.Kind]}
	choice := keyChunkChoice.Int(int(k.Choice))
	switch k.Kind {
	case meter.MarkRole, meter.MarkFirstAnswer, meter.MarkLastToken:
		e.attributes = []attribute.KeyValue{choice}
	case meter.MarkFirstToken:
		e.attributes = []attribute.KeyValue{choice}
		if r.FirstTokenKind != meter.KindNone {
			e.attributes = append(e.attributes, keyFirstTokenKind.String(string(r.FirstTokenKind)))
		}
	case meter.MarkChunk:
		e.attributes = append(make([]attribute.KeyValue, 0, 5), keyChunkIndex.Int(int(k.Index)), choice, keyChunkBytes.Int(int(k.Bytes)))
		if k.Tokens > 0 {
			e.attributes = append(e.attributes, keyChunkTokens.Int(int(k.Tokens)))
		}
		if k.Index > 0 {
			e.attributes = append(e.attributes, keyChunkGap.Float64(k.Gap.Seconds()))
		}
	case meter.MarkStall:
		e.attributes = []attribute.KeyValue{choice, keyChunkGap.Float64(k.Gap.Seconds())}
	case meter.MarkFinish:
		e.attributes = []attribute.KeyValue{choice}
		if i := int(k.Choice); i >= 0 && i < len(r.Finish) && r.Finish[i].OK {
			e.attributes = append(e.attributes, keyFinishReason.String(clean(r.Finish[i].V)))
		}
	case meter.MarkError:
		if t := errorType(r); t != "" {
			e.attributes = []attribute.KeyValue{keyErrorType.String(t)}
		}
	}
	return e
}

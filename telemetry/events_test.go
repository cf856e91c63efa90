package telemetry

import (
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// longRecord has every milestone, n choices' finishes and 64 chunks.
func longRecord(choices int) *meter.Record {
	r := richRecord()
	r.Marks = []meter.Mark{
		{At: 1 * ms, Kind: meter.MarkFirstByte}, {At: 2 * ms, Kind: meter.MarkRole},
		{At: 3 * ms, Kind: meter.MarkFirstToken}, {At: 4 * ms, Kind: meter.MarkFirstAnswer},
	}
	for i := range 64 {
		r.Marks = append(r.Marks, meter.Mark{At: 10*ms + time.Duration(i)*ms, Kind: meter.MarkChunk, Index: int32(i), Bytes: 100})
	}
	r.Marks = append(r.Marks, meter.Mark{At: 500 * ms, Kind: meter.MarkLastToken})
	r.Finish = nil
	for i := range choices {
		r.Marks = append(r.Marks, meter.Mark{At: 501 * ms, Kind: meter.MarkFinish, Choice: int32(i)})
		r.Finish = append(r.Finish, meter.Some("stop"))
	}
	r.Marks = append(r.Marks, meter.Mark{At: 502 * ms, Kind: meter.MarkUsage})
	return r
}

func chunkIndices(t *testing.T, s sdktrace.ReadOnlySpan) []int64 {
	t.Helper()
	var indices []int64
	for _, e := range s.Events() {
		if e.Name != eventChunk {
			continue
		}
		v, ok := value(e.Attributes, keyChunkIndex)
		if !ok {
			t.Fatal("a chunk has no index")
		}
		indices = append(indices, v.AsInt64())
	}
	return indices
}

func TestChunksShown(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*meter.Record)
		max     int
		want    int
		thinned int64
	}{
		{"ordinary", func(*meter.Record) {}, 0, 16, 3 + 48},
		{"failed", func(r *meter.Record) { r.Outcome = meter.UpstreamReset }, 0, 64, 3},
		{"stalled", func(r *meter.Record) { r.Stalls = 1 }, 0, 64, 3},
		{"configured", func(r *meter.Record) { r.Stalls = 1 }, 20, 20, 3 + 44},
		{"none", func(r *meter.Record) { r.Stalls = 1 }, -1, 0, 3 + 64},
	} {
		cfg, r := quiet(), longRecord(1)
		cfg.Trace.ChunkMax = c.max
		c.change(r)
		s := exchangeSpan(t, spansOf(t, cfg, r))
		got := chunkIndices(t, s)
		if len(got) != c.want {
			t.Errorf("%s: %d chunks, want %d", c.name, len(got), c.want)
		}
		if v, _ := value(s.Attributes(), keyEventsThinned); v.AsInt64() != c.thinned {
			t.Errorf("%s: %d thinned, want %d", c.name, v.AsInt64(), c.thinned)
		}
		if len(got) > 1 && (got[0] != 0 || got[len(got)-1] != 63) {
			t.Errorf("%s: chunks %v don't span the stream", c.name, got)
		}
	}
}

// TestEventsOfOneInstant: what one frame brought has one time, and is still told
// in the order in which it happened.
func TestEventsOfOneInstant(t *testing.T) {
	r := richRecord()
	r.Marks = nil
	for _, k := range []meter.MarkKind{
		meter.MarkFirstByte, meter.MarkRole, meter.MarkFirstToken, meter.MarkFirstAnswer,
		meter.MarkChunk, meter.MarkChunk, meter.MarkLastToken, meter.MarkFinish, meter.MarkUsage,
	} {
		r.Marks = append(r.Marks, meter.Mark{At: 3 * ms, Kind: k})
	}
	want := []string{
		eventFirstByte, eventRole, eventFirstToken, eventFirstAnswer,
		eventChunk, eventChunk, eventLastToken, eventFinish, eventUsage,
	}
	if got := eventNames(exchangeSpan(t, spansOf(t, quiet(), r))); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestThinIsEven(t *testing.T) {
	chunks := make([]meter.Mark, 64)
	for i := range chunks {
		chunks[i].Index = int32(i)
	}
	for n := 2; n <= 64; n++ {
		kept := thin(chunks, n)
		least, most := int32(64), int32(0)
		for i := 1; i < len(kept); i++ {
			step := kept[i].Index - kept[i-1].Index
			least, most = min(least, step), max(most, step)
		}
		if len(kept) != n || least < 1 || most-least > 1 {
			t.Fatalf("thin to %d: %d kept, steps from %d to %d", n, len(kept), least, most)
		}
	}
}

// TestNothingIsEvicted: the SDK forgets a span's oldest events at its limit,
// and the first token is among the oldest.
func TestNothingIsEvicted(t *testing.T) {
	for _, c := range []struct {
		limit   string
		choices int
		chunks  int
		dropped int64
	}{
		{"128", 1, 64, 0},
		{"40", 1, 24, 0},
		{"40", 20, 14, 0},
		{"20", 1, 4, 0},
		{"16", 1, 0, 0},
		{"5", 1, 0, 2},
		{"1", 1, 0, 6},
	} {
		t.Setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", c.limit)
		r := longRecord(c.choices)
		r.Stalls = 1
		s := exchangeSpan(t, spansOf(t, quiet(), r))
		if s.DroppedEvents() != 0 {
			t.Errorf("limit %s: the SDK dropped %d events", c.limit, s.DroppedEvents())
		}
		if !slices.Contains(eventNames(s), eventFirstToken) {
			t.Errorf("limit %s: no first token among %v", c.limit, eventNames(s))
		}
		if got := len(chunkIndices(t, s)); got != c.chunks {
			t.Errorf("limit %s, %d choices: %d chunks, want %d", c.limit, c.choices, got, c.chunks)
		}
		if v, _ := value(s.Attributes(), keyEventsDropped); v.AsInt64() != c.dropped {
			t.Errorf("limit %s: %d dropped, want %d", c.limit, v.AsInt64(), c.dropped)
		}
	}
}

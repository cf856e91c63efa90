package telemetry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/meter"
)

// keepingLogs takes records, or answers with err.
type keepingLogs struct {
	records []sdklog.Record
	err     error
}

func (k *keepingLogs) Export(_ context.Context, records []sdklog.Record) error {
	k.records = append(k.records, records...)
	return k.err
}

func (*keepingLogs) Shutdown(context.Context) error   { return nil }
func (*keepingLogs) ForceFlush(context.Context) error { return nil }

// exported are the spans and log records that r becomes, and the count of them.
func exported(t *testing.T, events string, x *keepingExporter, logs *keepingLogs, r *meter.Record) *tally {
	t.Helper()
	c, counts := quiet(), &tally{}
	c.setDefaults()
	c.Trace.Events = events
	out := startExport(environment{get: environ()}.exportOptions(), 1<<20, newSpanMaker(c.Trace, nil, ""), x, logs, counts, c.Logger)
	out.offer(newEntry(r, rulesOf(t, c)))
	if err := out.shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	return counts
}

// TestEventsGoWhereTheyAreAsked: the same events, whatever way they take.
func TestEventsGoWhereTheyAreAsked(t *testing.T) {
	r := richRecord()
	for _, c := range []struct {
		events       string
		onSpan, logs bool
	}{{eventsSpan, true, false}, {eventsLog, false, true}, {eventsBoth, true, true}} {
		x, logs := &keepingExporter{}, &keepingLogs{}
		counts := exported(t, c.events, x, logs, r)
		s := exchangeSpan(t, x.spans)
		names := eventNames(s)
		if (len(names) > 0) != c.onSpan || (len(logs.records) > 0) != c.logs || counts.events != len(logs.records) {
			t.Fatalf("%s: %d on the span, %d records, %d counted", c.events, len(names), len(logs.records), counts.events)
		}
		var logged []string
		for i, l := range logs.records {
			logged = append(logged, l.EventName())
			if l.TraceID() != r.Trace.TraceID || l.SpanID() != r.Trace.SpanID || !l.TraceFlags().IsSampled() {
				t.Errorf("%s is of the span %v", l.EventName(), l.SpanID())
			}
			if c.onSpan && (!l.Timestamp().Equal(s.Events()[i].Time) || l.AttributesLen() != len(s.Events()[i].Attributes)) {
				t.Errorf("%s at %v with %d attributes, on the span %+v", l.EventName(), l.Timestamp(), l.AttributesLen(), s.Events()[i])
			}
		}
		if c.onSpan && c.logs && !slices.Equal(names, logged) {
			t.Errorf("on the span %v, in the log %v", names, logged)
		}
	}
}

// TestLostEventsAreCounted: apart from their span, which may have arrived.
func TestLostEventsAreCounted(t *testing.T) {
	n := len(richRecord().Marks)
	logs := &keepingLogs{err: errors.New("unimplemented")}
	counts := exported(t, eventsBoth, &keepingExporter{}, logs, richRecord())
	if counts.out != 2 || counts.events != 0 || counts.reasons["events "+dropFailed] != n {
		t.Errorf("spans sent %d, events sent %d, dropped %v; want 2, 0 and %d", counts.out, counts.events, counts.reasons, n)
	}
}

// TestEventsOverOTLP: as log records of the service, with the events' names.
func TestEventsOverOTLP(t *testing.T) {
	sink, err := testkit.NewSink()
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, kv := range sink.Env() {
		key, value, _ := strings.Cut(kv, "=")
		t.Setenv(key, value)
	}
	c := quiet()
	c.Getenv, c.Trace.Events = nil, eventsLog
	tel, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	play(tel, richRecord())
	shut(t, tel)
	var names []string
	for _, l := range sink.Logs() {
		names = append(names, l.GetEventName())
	}
	if !slices.Contains(names, eventFirstToken) || !slices.Contains(names, eventChunk) {
		t.Errorf("log records %v", names)
	}
	for _, s := range sink.Spans(func(testkit.Span) bool { return true }) {
		if len(s.GetEvents()) > 0 {
			t.Errorf("%s has %d events", s.GetName(), len(s.GetEvents()))
		}
	}
}

// TestEventsStayWhereThereIsNoLog: nothing is lost by asking for a log that the
// environment does not have.
func TestEventsStayWhereThereIsNoLog(t *testing.T) {
	c := quiet()
	c.Trace.Events = eventsLog
	if s := exchangeSpan(t, spansOf(t, c, richRecord())); len(s.Events()) == 0 {
		t.Error("no events")
	}
}

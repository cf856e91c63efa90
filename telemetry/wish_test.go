package telemetry

import (
	"slices"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

func TestParseWish(t *testing.T) {
	for _, c := range []struct {
		wish   string
		forced bool
		detail uint8
	}{
		{"", false, 0}, {"force", true, 0}, {" Force , EVENTS", true, 4}, {"off", false, 1},
		{"summary,timeline", false, 3}, {"forced,all,", false, 0},
	} {
		if forced, detail := parseWish(c.wish); forced != c.forced || detail != c.detail {
			t.Errorf("%q: %v, %d; want %v, %d", c.wish, forced, detail, c.forced, c.detail)
		}
	}
}

// TestForced: what a trusted client forces goes upstream as sampled, and is kept
// and shown in full, whatever the head and the share say.
func TestForced(t *testing.T) {
	c := quiet()
	c.Getenv = environ("OTEL_TRACES_SAMPLER=always_off")
	c.Trace.Keep.Share = meter.Some(0.)
	c.Trace.Detail = detailNames[detailOff]
	x := &keepingExporter{}
	tel := open(t, c, x)
	plain := tel.Begin(meter.Begin{Operation: "chat"})
	r := longRecord(1)
	r.Trace = tel.Begin(meter.Begin{Operation: "chat", Wish: "force,events"})
	play(tel, r)
	worked(tel)
	page := scrape(t, tel, openMetrics)
	shut(t, tel)
	if plain.Sampled || plain.Forced || !r.Trace.Sampled || !r.Trace.UpstreamSampled {
		t.Errorf("without a wish %+v, with one %+v", plain, r.Trace)
	}
	s := exchangeSpan(t, x.spans)
	if reason, _ := value(s.Attributes(), keyKeepReason); reason.AsString() != keepForced {
		t.Errorf("kept because %q", reason.AsString())
	}
	if n := len(chunkIndices(t, s)); n != 64 {
		t.Errorf("%d chunks, want 64", n)
	}
	if !exemplarPattern.MatchString(page) {
		t.Error("no exemplar names it")
	}
}

// TestDetailByWish: more or less than is configured, for one exchange.
func TestDetailByWish(t *testing.T) {
	for wish, want := range map[string]bool{"": true, "summary": false, "timeline": false, "events": true} {
		r := richRecord()
		_, r.Trace.Detail = parseWish(wish)
		s := exchangeSpan(t, spansOf(t, quiet(), r))
		if got := slices.Contains(eventNames(s), eventChunk); got != want {
			t.Errorf("%q: chunks %v, want %v", wish, got, want)
		}
	}
}

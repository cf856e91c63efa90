package telemetry

import (
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestStreamTokens: what was live is not lost and not counted twice when it
// ends, and the counter never falls.
func TestStreamTokens(t *testing.T) {
	var live []meter.Live
	c := quiet()
	c.Live = func() []meter.Live { return live }
	tel := open(t, c, nil)
	const series = `inferspan_stream_tokens_total{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_pool="default"}`
	expect := func(when string, want float64) {
		t.Helper()
		if got := sample(t, scrape(t, tel, ""), series); got != want {
			t.Errorf("%s: %v tokens, want %v", when, got, want)
		}
	}
	l := meter.Labels{Operation: "chat", Model: "llama", Pool: "default"}
	live = []meter.Live{{Labels: l, Stream: true, Tokens: 3}, {Labels: l, Stream: true, Tokens: 20}, {Labels: l}}
	expect("two streams", 23)
	live = live[1:2]
	expect("one has left the table", 23)
	tel.measure(t.Context(), richRecord(), tel.rules.Load()) // it had 4
	expect("its record is there", 24)
	live[0].Tokens = 21
	expect("the other goes on", 25)
	live = nil
	r := richRecord()
	r.Timeline.Tokens = []int32{21}
	tel.measure(t.Context(), r, tel.rules.Load())
	expect("it ended too", 25)
	r = richRecord()
	r.Stream = false
	tel.measure(t.Context(), r, tel.rules.Load())
	expect("a response that is no stream", 25)
	shut(t, tel)
}

// TestSilence: the longest of the live streams that have a token.
func TestSilence(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	chat := meter.Labels{Operation: "chat", Model: "llama"}
	m := &liveMetrics{labels: newLabels([]string{"llama"}, nil), now: func() time.Time { return now }, live: func() []meter.Live {
		return []meter.Live{
			{Labels: chat, Stream: true, Tokens: 9, LastToken: at(20 * ms)},
			{Labels: chat, Stream: true, Tokens: 2, LastToken: at(3 * time.Second)},
			{Labels: chat, Stream: true, Start: at(time.Hour)}, // has none yet
			{Labels: meter.Labels{Operation: "responses"}, Stream: true, Tokens: 1, LastToken: at(-ms)},
		}
	}}
	for set, c := range m.count() {
		want := liveCounts{all: 3, streams: 3, tokens: 11, silence: 3 * time.Second}
		if set.attributes[0].Value.AsString() == "responses" {
			want = liveCounts{all: 1, streams: 1, tokens: 1} // a clock that was set back
		}
		if c != want {
			t.Errorf("%v: %+v, want %+v", set.attributes[0].Value.AsString(), c, want)
		}
	}
}

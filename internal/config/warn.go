package config

import (
	"fmt"
	"slices"
	"strconv"
)

// sdkEventLimit is the OpenTelemetry SDK's limit of events of a span where
// OTEL_SPAN_EVENT_COUNT_LIMIT does not set another.
const sdkEventLimit = 128

// milestoneEvents is how many of a span's events are kept free for milestones:
// the SDK drops the oldest events first, and the first token is among those.
const milestoneEvents = 16

// Warnings returns what is allowed and still likely not what is wanted, one a
// text. getenv is os.Getenv.
func (c *Config) Warnings(getenv func(string) string) []string {
	var out []string
	if limit, set := eventLimit(getenv); c.Trace.ChunkEvents.Max > limit-milestoneEvents && limit >= 0 {
		from := "the SDK's default"
		if set {
			from = "OTEL_SPAN_EVENT_COUNT_LIMIT"
		}
		out = append(out, fmt.Sprintf("trace.chunk_events.max: is %d, but %d take effect: a span has %d events at most (%s) and %d are kept free for milestones",
			c.Trace.ChunkEvents.Max, max(0, limit-milestoneEvents), limit, from, milestoneEvents))
	}
	if c.Record.Dir != "" && c.Record.Content == "keep" {
		out = append(out, fmt.Sprintf("record.content: is keep: prompts and completions are written to files in %q", c.Record.Dir))
	}
	isDefault := func(p Pool) bool { return p.Name == "default" }
	if len(c.Pools) > 0 && len(c.Models) == 0 && !slices.ContainsFunc(c.Pools, isDefault) {
		out = append(out, `pools: none is named "default", and models is empty: a filter that routes has no pool for any request, and answers 404; say under models which pool serves which, or name one "default"`)
	}
	out = append(out, policyWarnings(c.Pools)...)
	out = append(out, c.shedWarnings()...)
	return append(out, modelWarnings(c.Models)...)
}

// eventLimit returns the SDK's limit, negative for none, and whether the
// environment sets it.
func eventLimit(getenv func(string) string) (limit int, set bool) {
	n, err := strconv.Atoi(getenv("OTEL_SPAN_EVENT_COUNT_LIMIT"))
	if err != nil {
		return sdkEventLimit, false
	}
	return n, true
}

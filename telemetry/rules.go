package telemetry

import (
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// rules are the settings that can change while a Telemetry works. They are
// replaced as a whole and never changed.
type rules struct {
	head    *head
	keep    *keeper
	slos    sloList
	headers headerAttributes
	show    showing
}

// showing is how much a span shows.
type showing struct {
	detail      int // detailOff and so on
	chunkMax    int
	engineSpans bool
}

// newRules makes the rules that c has. Values of header attributes that before
// told apart stay told apart.
func newRules(c Config, s sdktrace.Sampler, before headerAttributes) (*rules, error) {
	headers, err := newHeaderAttributes(c.HeaderAttributes, before)
	if err != nil {
		return nil, err
	}
	return &rules{
		head: newHead(c.Trace, s), keep: newKeeper(c.Trace.Keep, c.SLOs), slos: c.SLOs, headers: headers,
		show: showing{
			detail:   slices.Index(detailNames, c.Trace.Detail),
			chunkMax: c.Trace.ChunkMax, engineSpans: c.Trace.EngineSpans,
		},
	}, nil
}

// Apply has exchanges go by the settings of c: from their beginning by those of
// the trace context, from their end by all others. Of c it takes Models and
// Pools, which metrics name from then on beside those before, Trace but for Events, SLOs and
// HeaderAttributes; all else, and the bounds of histograms, stay as New got them.
// With an error nothing has changed.
func (t *Telemetry) Apply(c Config) error {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	next, err := newRules(c, t.sampler, t.rules.Load().headers)
	if err != nil {
		return err
	}
	t.labels.models.pin(c.Models...)
	t.labels.pools.pin(c.Pools...)
	t.rules.Store(next)
	return nil
}

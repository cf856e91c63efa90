package meter

import "time"

// record returns the record of the exchange so far, ended at at, all but what
// depends on its outcome. It shares nothing with the meter and leaves it as it
// was.
func (m *Meter) record(at time.Duration) *Record {
	res, clocks := &m.response, &m.clocks
	r := &Record{
		RequestID:   m.start.RequestID,
		Trace:       m.start.Trace,
		Start:       m.start.At,
		StartSource: m.start.Source,
		Captured:    m.start.Captured,
		Wanted:      m.start.Wanted,

		Method:       m.start.Method,
		Path:         m.start.Path,
		Dialect:      m.dialect,
		Asked:        m.asked,
		RequestModel: Opt[string]{V: m.asked.Model, OK: m.asked.HasModel},
		Model:        m.model,
		ResponseID:   m.responseID,
		Status:       res.status,
		ErrorType:    m.errorType,
		Stream:       res.stream,
		Choices:      len(m.choices.all),
		Finish:       m.choices.finishes(),

		PromptTokens:    m.usage.prompt,
		CachedTokens:    m.usage.cached,
		ReasoningTokens: m.usage.reasoning,

		FirstByte:      clocks.firstByte,
		FirstEvent:     clocks.firstEvent,
		Role:           clocks.role,
		FirstToken:     clocks.firstToken,
		FirstTokenKind: clocks.firstKind,
		FirstAnswer:    clocks.firstAnswer,
		LastToken:      clocks.lastToken,
		LongestGap:     clocks.longestGap,
		Headers:        res.headers,
		End:            at,
		Sent:           m.sent,
		ClientDrain:    m.drain,

		Events:         res.events,
		Frames:         res.frames,
		SharedFrames:   res.shared,
		Bytes:          res.bytes,
		Skipped:        res.skipped,
		EvidenceEvents: m.choices.evidenceEvents(),
		Route:          m.route,

		ITLVoid: m.itlVoid(),
		Stalls:  m.gaps.stalls,
	}
	if res.parser != nil {
		r.KeepAlives = res.parser.KeepAlives()
		r.Skipped += res.parser.Overflows()
	}
	if res.opaque && res.bytes > 0 {
		r.Skipped++
	}
	if m.metrics != nil {
		metrics := *m.metrics
		r.ServerMetrics = &metrics
	}
	r.OutputTokens, r.OutputSource = m.output()
	r.ITL, r.Gap = m.gapsSoFar()
	if r.ITLVoid {
		r.ITL = Gaps{}
	}
	if m.tape != nil {
		r.Timeline = m.tape.line.result()
	}
	return r
}

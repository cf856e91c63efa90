package meter

import (
	"slices"
	"strings"
	"time"
)

// The model's record, field by field.

// record returns what the record must be after some frames; closing, at the end.
func (x *story) record(frames int, at time.Duration, closing bool) *Record {
	s := x.look(frames, closing)
	path, _, _ := strings.Cut(x.start.Path, "?")
	r := &Record{
		RequestID: x.start.RequestID, Start: x.start.At, StartSource: x.start.Source, Trace: x.start.Trace,
		Method: x.start.Method, Path: path, Dialect: s.dialect, Asked: x.asked,
		RequestModel: Opt[string]{V: x.asked.Model, OK: x.asked.HasModel},
		Route:        x.routed, Sent: x.sent, End: at,
		Frames: int64(frames), Bytes: int64(s.bytes()), KeepAlives: s.alive, SharedFrames: s.shared,
		EvidenceEvents: []int64{}, Finish: []Opt[string]{},
	}
	if x.head {
		r.Headers, r.Status, r.Stream = Some(x.headAt), x.status, x.stream
	}
	if frames > 0 {
		r.FirstByte = Some(s.frames[0].at)
	}
	if s.stream && len(s.list) > 0 {
		r.Events, r.FirstEvent = int64(len(s.list)), Some(s.list[0].at)
	}
	if s.opaque && frames > 0 {
		r.Skipped++
	}
	if s.known {
		s.said(r)
	}
	r.Choices = len(r.Finish)
	r.OutputTokens, r.OutputSource = s.output()
	r.PromptTokens = s.prompt()
	r.CachedTokens = s.last(func(c *counts) Opt[int64] { return c.cached })
	r.ReasoningTokens = s.last(func(c *counts) Opt[int64] { return c.reasoning })
	s.clocks(r)
	s.gaps(r)
	if closing {
		r.Outcome = s.outcome()
		if classOf(r.Outcome, r.Status) == ClassDone {
			r.TPOT = s.tpot(r)
		}
		r.NoFirstToken = s.noFirstToken(r)
	}
	s.marks(r)
	return r
}

// said takes what the events name.
func (s *seen) said(r *Record) {
	for choice := range s.choices() {
		r.EvidenceEvents = append(r.EvidenceEvents, int64(len(s.of(choice))))
		r.Finish = append(r.Finish, Opt[string]{})
	}
	for _, e := range s.list {
		if e.unreadable && s.stream {
			r.Skipped++
		}
		if e.id != "" && !r.ResponseID.OK {
			r.ResponseID = Some(e.id)
		}
		if e.model != "" && !r.Model.OK {
			r.Model = Some(e.model)
		}
		if e.errorType != "" && r.ErrorType == "" {
			r.ErrorType = e.errorType
		}
		if e.queueMS.OK {
			r.ServerMetrics = &ServerMetrics{QueueTimeMS: e.queueMS}
		}
		for _, p := range e.parts {
			if p.role && s.stream && !r.Role.OK {
				r.Role = Some(e.at)
			}
			if p.finish != "" {
				r.Finish[p.choice] = Some(p.finish)
			}
		}
	}
}

// clocks are those of definitions 3 that evidence moves.
func (s *seen) clocks(r *Record) {
	for _, p := range s.proofs {
		if !r.FirstToken.OK {
			r.FirstToken, r.FirstTokenKind = Some(p.at), p.kind
		}
		if !r.FirstAnswer.OK && p.kind != KindReasoning && p.kind != KindHidden {
			r.FirstAnswer = Some(p.at)
		}
		r.LastToken = Some(p.at)
	}
	for choice := range s.choices() {
		list := s.of(choice)
		for i := 1; i < len(list); i++ {
			if gap := list[i].at - list[i-1].at; !r.LongestGap.OK || gap > r.LongestGap.V {
				r.LongestGap = Some(gap)
			}
		}
	}
}

// gaps puts the samples into buckets, and the stream into its timeline. A sample
// is in a bucket where its gap is at most the bound times its tokens. Times are
// whole 100 µs, so that the meter's whole nanoseconds can't tell otherwise.
func (s *seen) gaps(r *Record) {
	put := func(g *Gaps, gap time.Duration, n int64, unknown bool) {
		to := &g.Exact
		if unknown {
			to = &g.Assumed
		}
		if *to == nil {
			*to = make([]GapBucket, len(s.options.GapBounds)+1)
		}
		i := slices.IndexFunc(s.options.GapBounds, func(b time.Duration) bool { return gap <= b*time.Duration(n) })
		if i < 0 {
			i = len(s.options.GapBounds)
		}
		(*to)[i].Count += n
		(*to)[i].Sum += gap
	}
	for choice := range s.choices() {
		list := moments(s.of(choice))
		for i := 1; i < len(list); i++ {
			gap, n := list[i].at-list[i-1].at, list[i].d
			if list[i].unknown {
				n = 1
			}
			put(&r.ITL, gap, n, list[i].unknown)
			put(&r.Gap, gap, 1, list[i].unknown)
		}
	}
	var counted int64
	assumed := false
	for _, p := range s.proofs {
		counted += max(p.d, 1)
		assumed = assumed || p.d == 0
	}
	if r.OutputSource == SourceUsage && assumed {
		excess := r.OutputTokens.V - counted
		r.ITLVoid = excess > 2 && float64(excess) > 0.1*float64(counted)
	}
	if r.ITLVoid {
		r.ITL = Gaps{}
	}
	all := moments(s.proofs)
	for i, m := range all {
		gap := time.Duration(0)
		if i > 0 {
			gap = m.at - all[i-1].at
		}
		r.Timeline.Gaps100us = append(r.Timeline.Gaps100us, int32(gap/(100*time.Microsecond)))
		r.Timeline.Tokens = append(r.Timeline.Tokens, int32(m.line))
		r.Timeline.Stride = 1
	}
}

// tpot has one sample for each choice. Read as: a choice of one instant has none.
func (s *seen) tpot(r *Record) []TPOTSample {
	var samples []TPOTSample
	for choice := range r.Choices {
		list := moments(s.of(choice))
		if len(list) < 2 {
			continue
		}
		n, source := s.exact(choice)
		share, assumed := int64(1), false // the choice has n/share tokens
		switch {
		case r.Choices == 1:
			n, assumed = r.OutputTokens.V, r.OutputSource == SourceEstimate
		case source == SourceNone:
			n, share, assumed = r.OutputTokens.V, int64(r.Choices), true
		}
		first := list[0].d
		if list[0].unknown {
			first, assumed = 1, true
		}
		if n < 2*share || n <= first*share {
			continue
		}
		value := int64(list[len(list)-1].at-list[0].at) * share / (n - first*share)
		samples = append(samples, TPOTSample{Value: time.Duration(value), Assumed: assumed})
	}
	return samples
}

// outcome is the table of definitions 5, in its order.
func (s *seen) outcome() Outcome {
	var failed, mark, anyFinish bool
	finished := map[int]bool{}
	for _, e := range s.list {
		if !s.known {
			break
		}
		failed, mark = failed || e.failed, mark || e.done
		for _, p := range e.parts {
			finished[p.choice] = finished[p.choice] || p.finish != ""
			anyFinish = anyFinish || p.finish != ""
		}
	}
	all := len(finished) > 0
	for _, f := range finished {
		all = all && f
	}
	isAnswer := len(finished) > 0
	clean := s.cause == CauseEnd && s.status != 0
	illegible := s.opaque && len(s.frames) > 0
	success := s.status >= 200 && s.status < 300
	for _, row := range []struct {
		outcome Outcome
		when    bool
	}{
		{Rejected, s.cause == CauseRejected},
		{HTTPError, s.status >= 400},
		{ErrorInStream, failed},
		{OK, mark && anyFinish},
		{OKNoFinish, mark},
		{ClientCancelledAfterFinish, s.cause == CauseClient && all},
		{ClientCancelled, s.cause == CauseClient},
		{UpstreamReset, s.cause == CauseUpstream},
		{Timeout, s.cause == CauseTimeout},
		{Lost, s.cause == CauseLost},
		{Aborted, !clean},
		{OK, all},
		// Read as: what is in a coding that can't be taken off is neither.
		{Empty, s.stream && s.status == 200 && len(s.list) == 0 && !illegible},
		{Truncated, s.stream && s.known && !illegible},
		{Unparsed, success && s.known && (illegible || !s.stream && !isAnswer)},
	} {
		if row.when {
			return row.outcome
		}
	}
	return OK
}

// classOf is the table of classes.
func classOf(o Outcome, status int) Class {
	failed := []Outcome{ErrorInStream, UpstreamReset, Timeout, Empty, Truncated}
	switch {
	case slices.Contains([]Outcome{OK, OKNoFinish, ClientCancelledAfterFinish}, o):
		return ClassDone
	case o == ClientCancelled || o == Aborted:
		return ClassCancelled
	case slices.Contains(failed, o) || o == HTTPError && (status >= 500 || status == 429):
		return ClassFailed
	case o == HTTPError:
		return ClassRefused
	case o == Rejected:
		return ClassRejected
	}
	return ClassUnknown
}

// noFirstToken: read as: also of what was asked for as a stream and failed before
// it was one.
func (s *seen) noFirstToken(r *Record) NoTokenReason {
	asStream := r.Stream || s.asked.Stream && (r.Status == 0 || r.Status >= 400)
	if r.FirstToken.OK || !s.known || !asStream {
		return ""
	}
	reasons := map[Outcome]NoTokenReason{
		ClientCancelled: NoTokenCancelled, Aborted: NoTokenAborted, ErrorInStream: NoTokenError,
		UpstreamReset: NoTokenReset, Timeout: NoTokenTimeout, Truncated: NoTokenTruncated, Empty: NoTokenEmpty,
	}
	switch class := classOf(r.Outcome, r.Status); {
	case class == ClassDone && r.OutputTokens.V > 0:
		return NoTokenHidden
	case class == ClassDone:
		return NoTokenEmpty
	case r.Outcome == HTTPError && class == ClassFailed:
		return NoTokenError
	}
	return reasons[r.Outcome]
}

// marks are the milestones, and of the chunks every so many that they fit.
func (s *seen) marks(r *Record) {
	add := func(kind MarkKind, at Opt[time.Duration], choice int) {
		if at.OK {
			r.Marks = append(r.Marks, Mark{At: at.V, Kind: kind, Choice: int32(choice)})
		}
	}
	add(MarkFirstByte, r.FirstByte, 0)
	add(MarkRole, r.Role, 0)
	add(MarkFirstToken, r.FirstToken, 0)
	add(MarkFirstAnswer, r.FirstAnswer, 0)
	add(MarkLastToken, r.LastToken, 0)
	for choice := range r.Choices {
		var last Opt[time.Duration]
		for _, e := range s.list {
			for _, p := range e.parts {
				if p.choice == choice && p.finish != "" {
					last = Some(e.at)
				}
			}
		}
		add(MarkFinish, last, choice)
	}
	if n := len(s.finals); n > 0 {
		add(MarkUsage, Some(s.finals[n-1].at), 0)
	}
	for _, e := range s.list {
		if s.known && e.failed {
			add(MarkError, Some(e.at), 0)
		}
	}
	if r.Outcome == ClientCancelled || r.Outcome == ClientCancelledAfterFinish {
		add(MarkCancelled, Some(r.End), 0)
	}
	stalls, _ := s.stalls()
	r.Stalls = len(stalls)
	r.Marks = append(r.Marks, stalls...)
	stride := 1
	for (len(s.proofs)+stride-1)/stride > s.options.MaxChunks {
		stride *= 2
	}
	before := map[int][]proof{}
	for i, p := range s.proofs {
		k := Mark{At: p.at, Kind: MarkChunk, Choice: int32(p.choice), Index: int32(len(before[p.choice])), Tokens: int32(p.d), Bytes: int32(p.size)}
		if list := before[p.choice]; len(list) > 0 {
			k.Gap = p.at - list[len(list)-1].at
		}
		before[p.choice] = append(before[p.choice], p)
		if i%stride == 0 {
			r.Marks = append(r.Marks, k)
		} else {
			r.MarksThinned++
		}
	}
}

// reached are the milestones that Observe has told of after some frames.
func (s *seen) reached() (set Milestone) {
	first := func(m Milestone, reached bool) {
		if reached {
			set |= m
		}
	}
	first(ReachedFirstByte, len(s.frames) > 0)
	first(ReachedFirstEvent, s.stream && len(s.list) > 0)
	first(ReachedFirstToken, len(s.proofs) > 0)
	first(ReachedFirstAnswer, slices.ContainsFunc(s.proofs, func(p proof) bool { return p.kind != KindReasoning && p.kind != KindHidden }))
	first(ReachedDone, s.known && s.stream && slices.ContainsFunc(s.list, func(e said) bool { return e.done }))
	return set
}

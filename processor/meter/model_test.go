package meter

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
)

// The reference model of the meter: the rules of definitions.md, by brute force
// over the whole list of what arrived. It shares with the meter no more than the
// names of the record, and looks back over the list where the meter keeps state.
//
// Where definitions.md leaves a choice, the model says how it reads it ("read
// as"). What it does not cover is left out by the generator, see model_gen_test.go.

// part is what an event says of one choice.
type part struct {
	choice                                 int
	role, reasoning, content, empty, tools bool
	ids, logprobs                          int
	finish                                 string
	// call is a tool call's number, from 1, where the dialect has one; ended: the
	// event repeats the call that it ends.
	call  int
	ended bool
}

func (p part) shows() bool { return p.reasoning || p.content || p.tools }

// counts are a server's own.
type counts struct {
	prompt, completion, cached, reasoning Opt[int64]
	final                                 bool // by its place
}

// said is one event: what it says, and where it stands in the body.
type said struct {
	comment                  bool
	whole, end               int // where its last line ends, and where the blank one does
	size                     int // of its data
	unreadable, done, failed bool
	errorType, id, model     string
	queueMS                  Opt[float64]
	usage                    *counts
	parts                    []part
	tells                    dialect.Dialect // what it is of, on a path that tells none
	at                       time.Duration
}

// story is an exchange: all that the meter is told, with what it means.
type story struct {
	start  Start
	asked  dialect.Request
	routed Route
	sent   Opt[int64]

	head        bool
	headAt      time.Duration
	status      int
	contentType string
	stream      bool   // as the content type says
	coding      string // "" or one that nobody can take off
	events      []said
	answer      *said // of a body that is no stream, read when it is whole
	body        []byte
	cuts        []cut
	cause       Cause
	end         time.Duration
	options     Options
}

// cut is a frame: body bytes up to an offset, and when they came.
type cut struct {
	upTo int
	at   time.Duration
}

// proof is one evidence event of a choice.
type proof struct {
	choice int
	at     time.Duration
	d      int64 // 0: not known
	kind   Kind
	size   int
	ids    int64
	lp     int64
}

// seen is what the model knows at one moment: the list, and what follows from it.
type seen struct {
	*story
	known   bool
	dialect dialect.Dialect
	opaque  bool
	frames  []cut
	list    []said
	closing bool
	shared  int64
	alive   int64

	proofs  []proof
	running map[int][]int64 // the counts of continuous usage, by choice
	finals  []said          // events with final usage
	prompts []Opt[int64]    // of usage that is not final, before any that is
	implied int64
}

// look returns what there is to see after some frames.
func (x *story) look(frames int, closing bool) *seen {
	s := &seen{story: x, frames: x.cuts[:frames], closing: closing, dialect: dialect.ForPath(x.start.Path), running: map[int][]int64{}}
	readable := x.start.Method == http.MethodPost
	s.known = s.dialect.Known() && readable
	s.opaque = x.head && x.coding != "" && (x.stream || s.known)
	bytes := s.bytes()
	if s.opaque || !x.head {
		return s
	}
	if !x.stream {
		if s.known && closing && x.answer != nil && bytes == len(x.body) {
			a := *x.answer
			a.at = s.lastFrame()
			s.list = append(s.list, a)
		}
		s.sift()
		return s
	}
	completed := make([]int, frames)
	for _, e := range x.events {
		switch {
		case e.end <= bytes:
			in := slices.IndexFunc(s.frames, func(c cut) bool { return c.upTo >= e.end })
			e.at = s.frames[in].at
			if e.comment {
				s.alive++
				continue
			}
			completed[in]++
		case !e.comment && e.whole <= bytes && closing && x.cause == CauseEnd && !e.unreadable:
			// At a clean end a tail without its blank line.
			e.at = s.lastFrame()
			completed[frames-1]++
		default:
			continue
		}
		s.list = append(s.list, e)
	}
	for _, n := range completed {
		if n > 1 {
			s.shared++
		}
	}
	if s.dialect == dialect.Unknown && len(s.list) > 0 {
		s.dialect = s.list[0].tells
		s.known = s.dialect.Known() && readable
	}
	if s.known {
		s.sift()
	}
	return s
}

func (s *seen) bytes() int {
	if len(s.frames) == 0 {
		return 0
	}
	return s.frames[len(s.frames)-1].upTo
}

func (s *seen) lastFrame() time.Duration {
	if len(s.frames) == 0 {
		return 0
	}
	return s.frames[len(s.frames)-1].at
}

// sift tells evidence from the rest, event by event, definitions 2.
func (s *seen) sift() {
	for i, e := range s.list {
		growth := int64(0)
		switch {
		case e.usage == nil:
		case s.isFinal(i):
			s.finals = append(s.finals, e)
		default:
			if len(s.finals) == 0 {
				s.prompts = append(s.prompts, e.usage.prompt)
			}
			if e.usage.completion.OK {
				growth = s.growth(e.parts[0].choice, e.usage.completion.V)
			}
		}
		if !s.stream {
			continue // not streaming: no evidence
		}
		for _, p := range e.parts {
			s.weigh(i, e, p, growth)
		}
	}
}

// isFinal: on a chunk without choices, or where a dialect says so; or first seen
// on the choice's finish chunk or after it, with no text beside it. Read as: one
// that is first seen beside nothing, behind tokens that had none, is final too.
func (s *seen) isFinal(i int) bool {
	e := s.list[i]
	if e.usage.final || len(e.parts) == 0 || !s.stream {
		return true
	}
	p := e.parts[0]
	finished := p.finish != "" || slices.ContainsFunc(s.list[:i], func(e said) bool {
		return slices.ContainsFunc(e.parts, func(q part) bool { return q.choice == p.choice && q.finish != "" })
	})
	return len(s.running[p.choice]) == 0 && !p.shows() && (finished || s.hadProof(p.choice))
}

func (s *seen) hadProof(choice int) bool {
	return slices.ContainsFunc(s.proofs, func(p proof) bool { return p.choice == choice })
}

// growth is by the count before. Read as: the first count of a choice that had
// evidence before is no one event's growth.
func (s *seen) growth(choice int, count int64) int64 {
	before := s.running[choice]
	s.running[choice] = append(before, count)
	switch {
	case len(before) > 0:
		return max(count-before[len(before)-1], 0)
	case s.hadProof(choice):
		return 0
	default:
		return count
	}
}

// weigh judges one part of one event: the strongest evidence decides.
func (s *seen) weigh(i int, e said, p part, growth int64) {
	d := growth
	if d == 0 {
		d = int64(p.ids)
	}
	if d == 0 {
		d = int64(p.logprobs)
	}
	if d == 0 && (!p.shows() || s.isEcho(i, p) || s.isRepeated(i, p)) {
		// The estimate's tokens of events that are no evidence.
		if p.empty && !p.role || p.finish == "stop" {
			s.implied++
		}
		return
	}
	kind := KindHidden
	switch {
	case p.reasoning:
		kind = KindReasoning
	case p.content:
		kind = KindContent
	case p.tools && !s.isRepeated(i, p):
		kind = KindToolCall
	}
	s.proofs = append(s.proofs, proof{choice: p.choice, at: e.at, d: d, kind: kind, size: e.size, ids: int64(p.ids), lp: int64(p.logprobs)})
}

// isEcho: the first content of a choice, where it was asked for, without anything
// that counts tokens. Read as: content alone, and before any evidence.
func (s *seen) isEcho(i int, p part) bool {
	a := s.asked
	if s.dialect != dialect.Chat || !a.Echo || !a.NoGenerationPrompt && a.LastRole != "assistant" {
		return false
	}
	if !p.content || p.reasoning || p.tools || s.hadProof(p.choice) {
		return false
	}
	return !slices.ContainsFunc(s.list[:i], func(e said) bool {
		return slices.ContainsFunc(e.parts, func(q part) bool { return q.choice == p.choice && q.content })
	})
}

// isRepeated: a tool's name is evidence where it first appears.
func (s *seen) isRepeated(i int, p part) bool {
	return p.ended && slices.ContainsFunc(s.list[:i], func(e said) bool {
		return slices.ContainsFunc(e.parts, func(q part) bool { return q.tools && q.call == p.call })
	})
}

// of returns the evidence of one choice.
func (s *seen) of(choice int) []proof {
	return slices.DeleteFunc(slices.Clone(s.proofs), func(p proof) bool { return p.choice != choice })
}

// choices is the highest index seen and one.
func (s *seen) choices() int {
	n := 0
	for _, e := range s.list {
		for _, p := range e.parts {
			n = max(n, p.choice+1)
		}
	}
	return n
}

// moment is one instant: evidence events of one choice, or of all, that have one
// arrival time.
type moment struct {
	at      time.Duration
	d       int64
	unknown bool
	line    int64 // the tokens with an unknown number as one
}

func moments(list []proof) []moment {
	var all []moment
	for _, p := range list {
		if len(all) == 0 || all[len(all)-1].at != p.at {
			all = append(all, moment{at: p.at})
		}
		m := &all[len(all)-1]
		m.d += p.d
		m.unknown = m.unknown || p.d == 0
		m.line += max(p.d, 1)
	}
	return all
}

// exact is the number of a choice's tokens by the strongest source that all of
// its evidence has.
func (s *seen) exact(choice int) (n int64, source Source) {
	if counts := s.running[choice]; len(counts) > 0 {
		return counts[len(counts)-1], SourceContinuous
	}
	var ids, logprobs int64
	someIDs, someLogprobs := false, false
	list := s.of(choice)
	for _, p := range list {
		ids, logprobs = ids+p.ids, logprobs+p.lp
		someIDs, someLogprobs = someIDs || p.ids == 0, someLogprobs || p.lp == 0
	}
	switch {
	case len(list) == 0:
		return 0, SourceNone
	case !someIDs:
		return ids, SourceTokenIDs
	case !someLogprobs:
		return logprobs, SourceLogprobs
	}
	return 0, SourceNone
}

// output is the output tokens and their source, definitions 4.
func (s *seen) output() (Opt[int64], Source) {
	if n := s.last(func(c *counts) Opt[int64] { return c.completion }); n.OK {
		return n, SourceUsage
	}
	if len(s.proofs) == 0 && len(s.running) == 0 {
		return Opt[int64]{}, SourceNone
	}
	// Read as: a source that some of the tokens did not come with is none.
	for _, source := range []Source{SourceContinuous, SourceTokenIDs, SourceLogprobs} {
		if n, ok := s.total(source); ok {
			return Some(n), source
		}
	}
	return Some(int64(len(s.proofs)) + s.implied), SourceEstimate
}

// total adds up one source over the choices that have evidence, or that source.
func (s *seen) total(source Source) (total int64, ok bool) {
	for choice := range s.choices() {
		list, running := s.of(choice), s.running[choice]
		switch {
		case source == SourceContinuous && len(running) > 0:
			total += running[len(running)-1]
		case len(list) == 0:
			continue
		case source == SourceContinuous:
			return 0, false
		}
		ok = true
		for _, p := range list {
			n := p.ids
			if source == SourceLogprobs {
				n = p.lp
			}
			if source != SourceContinuous {
				if n == 0 {
					return 0, false
				}
				total += n
			}
		}
	}
	return total, ok
}

// last is the last that final usage says; of messages the largest.
func (s *seen) last(field func(*counts) Opt[int64]) Opt[int64] {
	var n Opt[int64]
	for _, e := range s.finals {
		v := field(e.usage)
		if v.OK && (s.dialect != dialect.Messages || !n.OK || v.V > n.V) {
			n = v
		}
	}
	return n
}

// prompt is by final usage, else by the last that came before one.
func (s *seen) prompt() Opt[int64] {
	n := s.last(func(c *counts) Opt[int64] { return c.prompt })
	for _, p := range slices.Backward(s.prompts) {
		if p.OK && (!n.OK || s.dialect == dialect.Messages && p.V > n.V) {
			n = p
		}
	}
	return n
}

// stalls returns a mark for each: a gap above 500 ms and above 8 times the median
// of the choice's gaps before it. unsure tells that one hangs on the median so
// closely that the meter's may differ: above 62.5 ms that is the mean of a class
// of gaps, which is 2^(1/3) wide. Read as: of an even number the lower.
func (s *seen) stalls() (marks []Mark, unsure bool) {
	for choice := range s.choices() {
		var gaps []time.Duration
		list := moments(s.of(choice))
		for i := 1; i < len(list); i++ {
			gap := list[i].at - list[i-1].at
			median := time.Duration(0)
			if len(gaps) > 0 {
				sorted := slices.Sorted(slices.Values(gaps))
				median = sorted[(len(sorted)-1)/2]
			}
			if gap > 500*time.Millisecond && gap > 8*median {
				marks = append(marks, Mark{At: list[i].at, Kind: MarkStall, Gap: gap})
			}
			if median > 62500*time.Microsecond && gap > 500*time.Millisecond && gap > 6*median && gap < 11*median {
				unsure = true
			}
			gaps = append(gaps, gap)
		}
	}
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	return marks, unsure
}

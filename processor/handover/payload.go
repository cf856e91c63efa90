package handover

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// What a reader takes at most; no decision takes a day.
const (
	maxSpan   = int64(24 * time.Hour)
	maxTokens = 1 << 32
	maxRole   = 64
	maxName   = 64 // of a pool, an endpoint, a policy, a reason
	maxDetail = 16
	maxBytes  = 1 << 40

	maxCandidates = 8
)

// coder writes fields onto b, cut to their limits, or reads them from its
// beginning. Once a read has failed, all that follow leave their fields as they
// are.
type coder struct {
	b       []byte
	reading bool
	failed  bool
}

// fields walks the payload: one list for both ways, so that what is written is
// what is read. To change it, raise the version.
func (c *coder) fields(h *Handover) {
	t, a, r := &h.Trace, &h.Asked, &h.Route
	byEnvoy := h.Source == meter.StartEnvoy
	c.flags(
		&byEnvoy, &t.Sampled, &t.Forced, &t.UpstreamSampled, &t.LinkSampled,
		&a.HasModel, &a.Stream, &a.IncludeUsage, &a.ContinuousUsage, &a.Echo, &a.NoGenerationPrompt,
		&h.Options, &h.Usage.IncludeUsage, &h.Usage.Continuous, &h.Usage.Unsaid,
		&r.PredictedCachedTokens.OK,
	)
	if h.Source = meter.StartArrival; byEnvoy {
		h.Source = meter.StartEnvoy
	}
	c.id(t.TraceID[:])
	c.id(t.SpanID[:])
	c.id(t.ParentID[:])
	c.id(t.LinkTraceID[:])
	c.id(t.LinkSpanID[:])
	number(c, &t.Detail, 0, maxDetail)
	c.time(&h.Start)
	number(c, &h.Elapsed, 0, maxSpan)
	number(c, &h.Wanted.TTFT, 0, maxSpan)
	number(c, &h.Wanted.TPOT, 0, maxSpan)
	number(c, &h.Wanted.Duration, 0, maxSpan)
	number(c, &a.N, -1, math.MaxInt64)
	number(c, &a.MaxTokens, -1, math.MaxInt64)
	number(c, &r.Start, 0, maxSpan)
	number(c, &r.Duration, 0, maxSpan)
	number(c, &r.PredictedCachedTokens.V, 0, maxTokens)
	number(c, &h.Tokens, 0, maxTokens)
	number(c, &h.PromptBytes, 0, maxBytes)
	c.float(&r.Score)
	c.text(&a.Model, dialect.MaxModel)
	c.text(&a.LastRole, maxRole)
	c.text(&r.Pool, maxName)
	c.text(&r.Endpoint, maxName)
	c.text(&r.Policy, maxName)
	c.text(&r.Reason, maxName)
	c.text(&t.State, MaxLen)
	c.text(&t.LinkState, MaxLen)
	c.texts(&r.Candidates, maxCandidates, maxName)
}

// flags are bits of one number, the first the lowest.
func (c *coder) flags(all ...*bool) {
	var bits uint64
	for i, f := range all {
		if *f {
			bits |= 1 << i
		}
	}
	number(c, &bits, 0, 1<<len(all)-1)
	for i, f := range all {
		*f = bits&(1<<i) != 0
	}
}

// id is there whole, or not at all where it is zero.
func (c *coder) id(id []byte) {
	var there bool
	for _, b := range id {
		there = there || b != 0
	}
	c.flags(&there)
	switch {
	case !there:
	case !c.reading:
		c.b = append(c.b, id...)
	default:
		copy(id, c.take(len(id)))
	}
}

func (c *coder) time(t *time.Time) {
	nano := t.UnixNano()
	number(c, &nano, 0, math.MaxInt64)
	if c.reading {
		*t = time.Unix(0, nano).UTC()
	}
}

func (c *coder) float(f *float64) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(*f))
		return
	}
	if b := c.take(8); len(b) == 8 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		c.failed = math.IsNaN(v) || math.IsInf(v, 0)
		*f = v
	}
}

func (c *coder) text(s *string, limit int) {
	n := min(len(*s), limit)
	number(c, &n, 0, int64(limit))
	if c.reading {
		*s = string(c.take(n))
		return
	}
	c.b = append(c.b, (*s)[:n]...)
}

func (c *coder) texts(all *[]string, count, limit int) {
	n := min(len(*all), count)
	number(c, &n, 0, int64(count))
	if c.failed {
		return
	}
	if c.reading && n > 0 {
		*all = make([]string, n)
	}
	for i := range n {
		c.text(&(*all)[i], limit)
	}
}

// take returns the next n bytes, none where there are fewer.
func (c *coder) take(n int) []byte {
	if c.failed || n > len(c.b) {
		c.failed = true
		return nil
	}
	taken := c.b[:n]
	c.b = c.b[n:]
	return taken
}

// number is a varint; one beyond the limits can't be read.
func number[T ~int | ~int64 | ~uint64 | ~uint8](c *coder, v *T, least, most int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, min(max(int64(*v), least), most))
		return
	}
	n, size := binary.Varint(c.b)
	if c.failed || size <= 0 || n < least || n > most {
		c.failed = true
		return
	}
	c.b = c.b[size:]
	*v = T(n)
}

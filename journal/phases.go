package journal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// phases writes the bars. Each begins where the one before it ended, so that
// together they are the whole exchange, and what took long is the long bar.
func (p *page) phases(r *meter.Record) {
	total := max(r.End, 0)
	end := span(total)
	fmt.Fprintf(&p.buf, "%-*s%*s%*s  0%*s\n", labelCols, "", timeCols, "took", timeCols, "until",
		p.width-barStart-1, end)
	b := bars{page: p, total: total}

	if r.Route.Start > 0 || r.Route.Duration > 0 {
		b.until("gateway", r.Route.Start)
		b.until("route", r.Route.Start+r.Route.Duration)
	} else {
		p.line("gateway", "not told apart from the first byte's wait")
		p.line("route", "not told apart from the first byte's wait")
	}
	if !r.FirstByte.OK {
		p.line("first byte", "none: no body came")
	} else {
		b.until("first byte", r.FirstByte.V)
	}
	switch {
	case !r.FirstToken.OK:
		p.line("no token:", strings.Fields(noToken(r))...)
	default:
		b.until("first token", r.FirstToken.V)
		if r.FirstAnswer.OK && r.FirstAnswer.V > r.FirstToken.V {
			b.mark("  answer", r.FirstAnswer.V)
		}
		if r.LastToken.OK {
			b.until("decode", r.LastToken.V)
		}
	}
	b.until("end", total)
	p.buf.WriteByte('\n')
}

// noToken says why there is no first token.
func noToken(r *meter.Record) string {
	switch {
	case r.Outcome == meter.Rejected:
		return "no server was asked"
	case r.Outcome == meter.HTTPError:
		return "the answer is an error"
	case r.Outcome == meter.Unparsed:
		return "the response could not be read"
	case !r.Stream && r.Status != 0:
		return "the response is not a stream"
	case r.OutputTokens.OK && r.OutputTokens.V > 0:
		return strconv.FormatInt(r.OutputTokens.V, 10) + " were generated and none was shown"
	case r.Outcome == meter.OK || r.Outcome == meter.OKNoFinish:
		return "the stream has none"
	case meanings[r.Outcome] != "":
		return meanings[r.Outcome]
	default:
		return "none came so far"
	}
}

// bars draws rows over a total time, one after the other.
type bars struct {
	page  *page
	total time.Duration
	at    time.Duration // where the last row ended
}

// until draws the row from the end of the last one to at. A time that runs
// backwards, as of a record that was made elsewhere, takes no time.
func (b *bars) until(label string, at time.Duration) {
	at = min(max(at, b.at), max(b.total, b.at))
	b.row(label, span(at-b.at), b.at, at)
	b.at = at
}

// mark draws a moment inside the next row.
func (b *bars) mark(label string, at time.Duration) {
	at = min(max(at, 0), b.total)
	b.row(label, "", at, at)
}

func (b *bars) row(label, took string, from, to time.Duration) {
	room := b.page.width - barStart
	first := b.column(from, room)
	bar := "|"
	if last := b.column(to, room); last > first {
		bar = strings.Repeat("=", last-first)
	}
	fmt.Fprintf(&b.page.buf, "%-*s%*s%*s  %*s%s\n", labelCols, label, timeCols, took, timeCols, span(to), first, "", bar)
}

// column is where at stands in room columns, the last of them for the end.
func (b *bars) column(at time.Duration, room int) int {
	if b.total <= 0 {
		return 0
	}
	return int(float64(at) / float64(b.total) * float64(room-1))
}

// foot says how much there was.
func (p *page) foot(r *meter.Record) {
	p.line("tokens", tokens(r)...)
	p.line("latency", latency(r)...)
	p.line("body", body(r)...)
	if m := r.ServerMetrics; m != nil {
		p.line("server says", "queue "+millis(m.QueueTimeMS)+",", "prefill "+millis(m.TimeToFirstTokenMS)+",",
			"decode "+millis(m.GenerationTimeMS))
	}
}

func tokens(r *meter.Record) []string {
	out := []string{"prompt " + count(r.PromptTokens)}
	if r.CachedTokens.OK {
		out = append(out, "("+count(r.CachedTokens)+" cached)")
	}
	out[len(out)-1] += ","
	out = append(out, "output "+count(r.OutputTokens))
	if r.ReasoningTokens.OK && r.ReasoningTokens.V > 0 {
		out = append(out, "("+count(r.ReasoningTokens)+" reasoning)")
	}
	if r.OutputSource != meter.SourceNone {
		out = append(out, "by "+printable(string(r.OutputSource)))
	}
	for _, f := range finishes(r.Finish) {
		out[len(out)-1] += ","
		out = append(out, f)
	}
	return out
}

// finishes names each finish reason once, in the order of the choices, with
// how many choices had it where it was not the only one.
func finishes(all []meter.Opt[string]) []string {
	n := make(map[string]int, 1)
	var order []string
	for _, f := range all {
		reason := "finish none"
		if f.OK {
			reason = "finish " + printable(f.V)
		}
		if n[reason]++; n[reason] == 1 {
			order = append(order, reason)
		}
	}
	for i, reason := range order {
		if len(all) > 1 {
			order[i] = reason + " (" + strconv.Itoa(n[reason]) + ")"
		}
	}
	return order
}

func latency(r *meter.Record) []string {
	out := []string{"TTFT none,"}
	if r.FirstToken.OK {
		out[0] = "TTFT " + span(r.FirstToken.V)
		if r.FirstTokenKind != meter.KindNone {
			out = append(out, "("+printable(string(r.FirstTokenKind))+")")
		}
		out[len(out)-1] += ","
	}
	if d, ok := TPOT(r); ok {
		out = append(out, "TPOT "+span(d), "(assumed),")
	} else {
		out = append(out, "TPOT none,")
	}
	if r.LongestGap.OK {
		return append(out, "longest gap "+span(r.LongestGap.V))
	}
	return append(out, "no gap")
}

// TPOT is the time per output token of a record's only choice: from the first
// evidence to the last, over the tokens after the first. It assumes one token
// in the first instant, since the JSON does not tell. There is none of an
// exchange that did not end well, of less than two tokens, and of several
// choices, whose last tokens are not told apart.
func TPOT(r *meter.Record) (time.Duration, bool) {
	if r.Class() != meter.ClassDone || r.Choices != 1 || !r.FirstToken.OK || !r.LastToken.OK ||
		r.LastToken.V < r.FirstToken.V || r.OutputTokens.V < 2 {
		return 0, false
	}
	return (r.LastToken.V - r.FirstToken.V) / time.Duration(r.OutputTokens.V-1), true
}

func body(r *meter.Record) []string {
	out := []string{"bytes " + strconv.FormatInt(r.Bytes, 10) + ",", "frames " + strconv.FormatInt(r.Frames, 10)}
	if r.Stream {
		out[1] += ","
		out = append(out, "events "+strconv.FormatInt(r.Events, 10)+",", "keep-alives "+strconv.FormatInt(r.KeepAlives, 10))
	}
	return out
}

func count(n meter.Opt[int64]) string {
	if !n.OK {
		return "not known"
	}
	return strconv.FormatInt(n.V, 10)
}

func millis(ms meter.Opt[float64]) string {
	if !ms.OK {
		return "not known"
	}
	return strconv.FormatFloat(ms.V, 'f', 1, 64) + " ms"
}

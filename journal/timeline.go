package journal

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

const (
	// timelineRows is how high the chart of tokens is at most, in lines.
	timelineRows = 5
	// timelineUnit is the unit of a timeline's gaps.
	timelineUnit = 100 * time.Microsecond
	// shownStalls is how many stalls are told with their times.
	shownStalls = 3
)

// The marks in a chart: what stands in a column.
const (
	cellTokens = '#'
	cellNone   = '.'
	cellStall  = '!'
)

// timeline draws when the tokens came, from the first to the last: a column for
// each slice of that time, as high as it has tokens. It draws nothing of a
// record that came as JSON, which has no timeline, and of a stream whose tokens
// all came at once.
func (p *page) timeline(r *meter.Record) {
	c := newChart(r, p.width-labelCols)
	if c == nil {
		return
	}
	p.line("timeline", commas([]string{
		seen(c.total, r.OutputTokens),
		"first at " + span(c.from), "last at " + span(c.from+c.length),
		"a column is " + span(c.length/time.Duration(len(c.tokens))),
	})...)
	rows := int(min(c.most, timelineRows))
	for row := rows; row > 0; row-- {
		label := ""
		if row == rows {
			label = strconv.FormatInt(c.most, 10)
		}
		p.chart(label+" |", c.row(row, rows))
	}
	marks, says := c.milestones(r)
	if len(says) > 0 {
		p.chart("", marks)
	}
	p.line("", commas(append(c.legend(), says...))...)
	p.stalls(r)
	p.buf.WriteByte('\n')
}

// chart writes one line of a chart, with a label that ends where it begins.
func (p *page) chart(label string, cells []byte) {
	fmt.Fprintf(&p.buf, "%*s%s\n", labelCols, label, bytes.TrimRight(cells, " "))
}

// stalls tells when the first stalls were.
func (p *page) stalls(r *meter.Record) {
	var says []string
	for i := range r.Marks {
		if m := &r.Marks[i]; m.Kind == meter.MarkStall && len(says) < shownStalls {
			says = append(says, span(m.Gap)+" until "+span(m.At))
		}
	}
	if len(says) == 0 {
		return
	}
	if more := r.Stalls - len(says); more > 0 {
		says = append(says, "and "+strconv.Itoa(more)+" more")
	}
	p.line("stalls", commas(says)...)
}

// seen says how many tokens are in the chart. What comes with an unknown number
// of tokens counts as one.
func seen(n int64, output meter.Opt[int64]) string {
	if output.OK && output.V > n {
		return fmt.Sprintf("%d of %d tokens seen", n, output.V)
	}
	return strconv.FormatInt(n, 10) + " tokens"
}

// commas sets a comma behind each but the last.
func commas(says []string) []string {
	for i := range len(says) - 1 {
		says[i] += ","
	}
	return says
}

// chart is a timeline by columns, which share its time evenly.
type chart struct {
	from, length time.Duration // of the first token; to the last
	tokens       []int64
	stalled      []bool // columns without a token that are inside a stall
	total, most  int64
}

// newChart returns a chart of that many columns, nil where there is nothing to
// draw.
func newChart(r *meter.Record, columns int) *chart {
	t := &r.Timeline
	if len(t.Gaps100us) != len(t.Tokens) || t.Stride < 1 || !r.FirstToken.OK {
		return nil
	}
	c := &chart{from: r.FirstToken.V, tokens: make([]int64, columns), stalled: make([]bool, columns)}
	for _, g := range t.Gaps100us {
		c.length += time.Duration(max(g, 0)) * timelineUnit
	}
	if c.length == 0 {
		return nil
	}
	at := time.Duration(0)
	for i, g := range t.Gaps100us {
		gap := time.Duration(max(g, 0)) * timelineUnit
		c.add(at, gap, int64(max(t.Tokens[i], 0)), t.Stride)
		at += gap
	}
	for _, n := range c.tokens {
		c.most = max(c.most, n)
	}
	for i := range r.Marks {
		if m := &r.Marks[i]; m.Kind == meter.MarkStall {
			c.stall(m.At-m.Gap, m.At)
		}
	}
	if c.most == 0 {
		return nil
	}
	return c
}

// add adds one slot. Of the arrivals in it only the last one's time is known:
// those before are spread evenly.
func (c *chart) add(at, gap time.Duration, tokens int64, stride int) {
	c.total += tokens
	n := int64(stride)
	if gap == 0 {
		n = 1
	}
	n = max(1, min(n, tokens, int64(len(c.tokens))))
	for i := int64(1); i <= n; i++ {
		part := tokens*i/n - tokens*(i-1)/n
		c.tokens[c.column(c.from+at+time.Duration(float64(gap)*float64(i)/float64(n)))] += part
	}
}

// column is where a time stands; what is outside stands at the edge.
func (c *chart) column(at time.Duration) int {
	i := int(float64(at-c.from) / float64(c.length) * float64(len(c.tokens)-1))
	return min(max(i, 0), len(c.tokens)-1)
}

// stall marks the columns without a token between two times.
func (c *chart) stall(from, to time.Duration) {
	for i := c.column(from); i <= c.column(to); i++ {
		c.stalled[i] = c.tokens[i] == 0
	}
}

// row is one line of the chart, of those that are the lowest is 1.
func (c *chart) row(row, rows int) []byte {
	cells := make([]byte, len(c.tokens))
	for i, n := range c.tokens {
		height := (n*int64(rows) + c.most - 1) / c.most
		switch {
		case height >= int64(row):
			cells[i] = cellTokens
		case n > 0 || row > 1:
			cells[i] = ' '
		case c.stalled[i]:
			cells[i] = cellStall
		default:
			cells[i] = cellNone
		}
	}
	return cells
}

// legend says what the cells are that the chart has.
func (c *chart) legend() []string {
	rows := min(c.most, timelineRows)
	says := []string{"# a token"}
	if each := (c.most + rows - 1) / rows; each > 1 {
		says[0] = "# up to " + strconv.FormatInt(each, 10) + " tokens"
	}
	none, stalled := false, false
	for i, n := range c.tokens {
		none = none || n == 0 && !c.stalled[i]
		stalled = stalled || c.stalled[i]
	}
	if none {
		says = append(says, ". none")
	}
	if stalled {
		says = append(says, "! a stall")
	}
	return says
}

// milestoneLetters are the marks that are shown below the chart, those that
// matter most last: they stand where two share a column.
var milestoneLetters = []struct {
	kind   meter.MarkKind
	letter byte
	says   string
}{
	{meter.MarkUsage, 'u', "u usage"},
	{meter.MarkFinish, 'f', "f finish"},
	{meter.MarkFirstAnswer, 'a', "a first answer token"},
	{meter.MarkCancelled, 'c', "c the client hung up"},
	{meter.MarkError, 'e', "e error"},
}

// milestones is the line below the chart, and what its letters mean.
func (c *chart) milestones(r *meter.Record) (cells []byte, says []string) {
	cells = bytes.Repeat([]byte{' '}, len(c.tokens))
	for _, l := range milestoneLetters {
		for i := range r.Marks {
			if m := &r.Marks[i]; m.Kind == l.kind {
				cells[c.column(m.At)] = l.letter
			}
		}
	}
	for _, l := range milestoneLetters {
		if bytes.IndexByte(cells, l.letter) >= 0 {
			says = append(says, l.says)
		}
	}
	return cells, says
}

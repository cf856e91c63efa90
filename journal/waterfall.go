package journal

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// MinWidth is the narrowest waterfall, in columns.
const MinWidth = 60

// Waterfall writes where the time of one exchange went, in lines of at most
// width columns (at least MinWidth), in printable ASCII whatever is in r. What
// is not known is said, never left out. An error is w's.
func Waterfall(w io.Writer, r *meter.Record, width int) error {
	p := &page{width: max(width, MinWidth)}
	p.head(r)
	p.phases(r)
	p.timeline(r)
	p.foot(r)
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("write a waterfall: %w", err)
	}
	return nil
}

// page collects lines of a width.
type page struct {
	width int
	buf   bytes.Buffer
}

// The columns of a line: a label, two times, the bars.
const (
	labelCols = 13
	timeCols  = 10
	barStart  = labelCols + 2*timeCols + 2
)

// line writes a label and words, each wrapped whole to where the first began;
// a word that is longer than a line is cut.
func (p *page) line(label string, words ...string) {
	room := p.width - labelCols
	col := 0
	fmt.Fprintf(&p.buf, "%-*s", labelCols, label)
	for _, word := range words {
		if len(word) > room {
			word = word[:room-3] + "..."
		}
		if col > 0 && col+1+len(word) > room {
			fmt.Fprintf(&p.buf, "\n%*s", labelCols, "")
			col = 0
		}
		if col > 0 {
			p.buf.WriteByte(' ')
			col++
		}
		p.buf.WriteString(word)
		col += len(word)
	}
	p.buf.WriteByte('\n')
}

// head says what the exchange was and how it ended.
func (p *page) head(r *meter.Record) {
	if r.Name != "" {
		p.line("recording", printable(r.Name))
	}
	p.line("request", known(r.RequestID, "no request id"))
	p.line("response", known(r.ResponseID.V, "no response id"))
	if r.Trace.TraceID == [16]byte{} {
		p.line("trace", "none")
	} else {
		p.line("trace", fmt.Sprintf("%x", r.Trace.TraceID), fmt.Sprintf("span %x", r.Trace.SpanID))
	}
	if r.Start.IsZero() {
		p.line("started", "not known")
	} else {
		p.line("started", r.Start.UTC().Format("2006-01-02 15:04:05.000000"), "UTC")
	}
	model := known(r.RequestModel.V, "none asked for")
	switch {
	case !r.Model.OK:
		p.line("model", model+",", "the response names none")
	case r.Model.V != r.RequestModel.V:
		p.line("model", model+",", "answered as", printable(r.Model.V))
	default:
		p.line("model", model)
	}
	p.line("endpoint", endpoint(&r.Route)...)
	p.line("outcome", ended(r)...)
	p.buf.WriteByte('\n')
}

func endpoint(r *meter.Route) []string {
	to := r.Endpoint
	if to == "" {
		to = r.Served
	}
	out := []string{known(to, "none") + ","}
	if r.Pool == "" {
		out = append(out, "no pool")
	} else {
		out = append(out, "pool "+printable(r.Pool))
	}
	if r.Policy != "" {
		out = append(out, "by "+printable(r.Policy))
	}
	if n := len(r.Candidates); n > 1 {
		out = append(out, "of "+strconv.Itoa(n))
	}
	if r.Reason != "" {
		out = append(out, "("+printable(r.Reason)+")")
	}
	if r.Served != "" && r.Served != to {
		out = append(out, "but served by", printable(r.Served))
	}
	if r.Attempts > 1 {
		out = append(out, "after "+strconv.Itoa(r.Attempts)+" attempts")
	}
	return out
}

// meanings says in words what an outcome's name does not.
var meanings = map[meter.Outcome]string{
	meter.Rejected:                   "Inferspan answered itself",
	meter.HTTPError:                  "answered with an error",
	meter.ErrorInStream:              "an error came inside the response",
	meter.OK:                         "complete",
	meter.OKNoFinish:                 "complete, no choice told why it ended",
	meter.ClientCancelledAfterFinish: "the client hung up after the last token",
	meter.ClientCancelled:            "the client hung up",
	meter.UpstreamReset:              "the model server broke off",
	meter.Timeout:                    "Envoy timed out",
	meter.Lost:                       "it went on where Inferspan could not see it",
	meter.Aborted:                    "it broke off, by which side is not known",
	meter.Empty:                      "the stream ended without an event",
	meter.Truncated:                  "the stream ended before its end mark",
	meter.Unparsed:                   "the response could not be read",
}

func ended(r *meter.Record) []string {
	status := "no response"
	if r.Status != 0 {
		status = "status " + strconv.Itoa(r.Status)
	}
	out := []string{known(string(r.Outcome), "not ended") + ",", status}
	if m := meanings[r.Outcome]; m != "" {
		out[1] += ":"
		out = append(out, strings.Fields(m)...)
	}
	return out
}

// known is s made printable, or what is said where there is none.
func known(s, none string) string {
	if s == "" {
		return none
	}
	return printable(s)
}

// printable escapes all but printable ASCII, so that a client's id or model
// name can neither steer a terminal nor take more columns than it has letters.
func printable(s string) string {
	q := strconv.QuoteToASCII(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// span is a duration for people: three or four digits and a unit.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " us"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
	default:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	}
}

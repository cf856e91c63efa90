package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
)

const (
	columns = "%-26s %-9s %-16s %9s %9s %9s  %-16s %s\n"
	// headEvery and lookupEvery are after how many requests the columns' names
	// and a lookup command are printed again.
	headEvery   = 20
	lookupEvery = 5
)

// report prints requests as their records come in, and at the end what they
// come to. All its numbers are the records'.
type report struct {
	out              io.Writer
	binary, adminURL string

	printed  int
	failures int
	records  []*meter.Record // what a summary needs, of all
}

func newReport(out io.Writer, binary, adminURL string) *report {
	return &report{out: out, binary: binary, adminURL: adminURL}
}

func (r *report) add(got result) error {
	if got.err != nil {
		r.failures++
		return say(r.out, "no record: %v\n", got.err)
	}
	rec := got.record
	r.records = append(r.records, rec)
	if r.printed%headEvery == 0 {
		if err := say(r.out, "\n"+columns, "RESPONSE ID", "MODEL", "ENDPOINT", "TTFT", "TPOT", "TOKENS", "OUTCOME", "TRACE ID"); err != nil {
			return err
		}
	}
	r.printed++
	id := rec.ResponseID.V
	if id == "" {
		id = "-"
	}
	tpot, ok := journal.TPOT(rec)
	if err := say(r.out, columns, id, rec.RequestModel.V, rec.Route.Endpoint,
		millis(rec.FirstToken.V, rec.FirstToken.OK), millis(tpot, ok), tokens(rec),
		rec.Outcome, fmt.Sprintf("%x", rec.Trace.TraceID)); err != nil {
		return err
	}
	if r.printed%lookupEvery != 1 {
		return nil
	}
	if id == "-" {
		id = rec.RequestID
	}
	return say(r.out, "  more of it, while the demo runs:  %s lookup %s --admin %s\n", r.binary, id, r.adminURL)
}

// tokens is input/output; an estimate is marked.
func tokens(r *meter.Record) string {
	in, out := "-", "-"
	if r.PromptTokens.OK {
		in = strconv.FormatInt(r.PromptTokens.V, 10)
	}
	if r.OutputTokens.OK {
		out = strconv.FormatInt(r.OutputTokens.V, 10)
		if r.OutputSource == meter.SourceEstimate {
			out = "~" + out
		}
	}
	return in + "/" + out
}

func millis(d time.Duration, ok bool) string {
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
}

// summary prints what all requests come to, and the waterfall of the slowest.
func (r *report) summary() error {
	outcomes := map[meter.Outcome]int{}
	endpoints := map[string][]*meter.Record{}
	var slowest *meter.Record
	for _, rec := range r.records {
		outcomes[rec.Outcome]++
		e := rec.Route.Endpoint
		if e == "" {
			e = "none"
		}
		endpoints[e] = append(endpoints[e], rec)
		if rec.FirstToken.OK && (slowest == nil || rec.FirstToken.V > slowest.FirstToken.V) {
			slowest = rec
		}
	}
	if err := say(r.out, "\n%d requests:", len(r.records)); err != nil {
		return err
	}
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		if err := say(r.out, " %d %s,", outcomes[o], o); err != nil {
			return err
		}
	}
	if err := say(r.out, " %d without a record\n", r.failures); err != nil {
		return err
	}
	const row = "%-16s %9s %12s %12s\n"
	if err := say(r.out, row, "ENDPOINT", "REQUESTS", "MEDIAN TTFT", "MEDIAN TPOT"); err != nil {
		return err
	}
	for _, e := range slices.Sorted(maps.Keys(endpoints)) {
		all := endpoints[e]
		ttft := median(all, func(rec *meter.Record) (time.Duration, bool) { return rec.FirstToken.V, rec.FirstToken.OK })
		if err := say(r.out, row, e, strconv.Itoa(len(all)), ttft, median(all, journal.TPOT)); err != nil {
			return err
		}
	}
	if slowest == nil {
		return nil
	}
	if err := say(r.out, "\nThe slowest to its first token:\n\n"); err != nil {
		return err
	}
	return journal.Waterfall(r.out, slowest, 80)
}

// median is the middle of what of gives.
func median(records []*meter.Record, of func(*meter.Record) (time.Duration, bool)) string {
	var all []time.Duration
	for _, rec := range records {
		if d, ok := of(rec); ok {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return millis(all[len(all)/2], true)
}

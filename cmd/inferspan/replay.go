package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
)

// replay turns recorded exchanges into records. A file that can't be read is
// reported, and the others are still replayed.
func replay(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("replay", "[--json | --waterfall] [--cut frames|bytes|SIZE|random:SEED] FILE...", stderr)
	jsonWanted := flags.Bool("json", false, "print the records as JSON, one a line")
	waterfallWanted := flags.Bool("waterfall", false, "show where the time of each went, and when its tokens came")
	cutText := flags.String("cut", "frames", "how to cut the recorded pieces: frames, bytes, SIZE or random:SEED")
	var files []string
	for rest := args; ; rest = flags.Args()[1:] { // flags may stand between the files
		if flags.Parse(rest) != nil {
			return exitUsage // Parse has said why
		}
		if flags.NArg() == 0 {
			break
		}
		files = append(files, flags.Arg(0))
	}
	cut, err := recording.ParseCut(*cutText)
	if err != nil {
		writef(stderr, "inferspan replay: %v\n", err)
		return exitUsage
	}
	form := asTable
	switch {
	case *jsonWanted && *waterfallWanted:
		writef(stderr, "inferspan replay: --json and --waterfall exclude each other\n")
		flags.Usage()
		return exitUsage
	case *jsonWanted:
		form = asJSON
	case *waterfallWanted:
		form = asWaterfall
	}
	if len(files) == 0 {
		writef(stderr, "inferspan replay: no file named\n")
		flags.Usage()
		return exitUsage
	}

	code := 0
	out := newRecordWriter(stdout, form)
	for _, file := range files {
		rec, err := recording.ReadFile(file)
		if err == nil {
			err = out.write(recording.Replay(rec, cut))
		}
		if err != nil {
			writef(stderr, "inferspan replay: %v\n", err)
			code = exitFault
		}
	}
	if err := out.flush(); err != nil {
		writef(stderr, "inferspan replay: %v\n", err)
		code = exitFault
	}
	return code
}

// waterfallWidth is the width of a waterfall, in columns.
const waterfallWidth = 80

// recordWriter writes records in one of three forms.
type recordWriter struct {
	form  recordForm
	lines *bufio.Writer // for JSON and waterfalls
	table *tabwriter.Writer
	count int
}

type recordForm uint8

const (
	asTable recordForm = iota
	asJSON             // a line each
	asWaterfall
)

func newRecordWriter(w io.Writer, f recordForm) *recordWriter {
	return &recordWriter{form: f, lines: bufio.NewWriter(w), table: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

func (w *recordWriter) write(r *meter.Record) error {
	var err error
	switch w.form {
	case asJSON:
		_, err = w.lines.Write(append(r.AppendJSON(nil), '\n'))
	case asWaterfall:
		if w.count > 0 {
			_, err = w.lines.WriteString("\n")
		}
		if err == nil {
			err = journal.Waterfall(w.lines, r, waterfallWidth)
		}
	case asTable:
		if w.count == 0 {
			_, err = fmt.Fprintln(w.table, "NAME\tOUTCOME\tTTFT\tTPOT\tTOKENS\tSOURCE\tEVENTS")
		}
		if err == nil {
			_, err = fmt.Fprintf(w.table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", printable(r.Name), r.Outcome,
				milliseconds(r.FirstToken), milliseconds(meanTPOT(r)), tokens(r), orDash(string(r.OutputSource)), r.Events)
		}
	}
	w.count++
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

func (w *recordWriter) flush() error {
	flush := w.lines.Flush
	if w.form == asTable {
		flush = w.table.Flush
	}
	if err := flush(); err != nil {
		return fmt.Errorf("write the records: %w", err)
	}
	return nil
}

// meanTPOT is the mean time per output token over the choices that have one.
func meanTPOT(r *meter.Record) meter.Opt[time.Duration] {
	if len(r.TPOT) == 0 {
		return meter.Opt[time.Duration]{}
	}
	var sum time.Duration
	for _, s := range r.TPOT {
		sum += s.Value
	}
	return meter.Some(sum / time.Duration(len(r.TPOT)))
}

// printable escapes all but printable ASCII: a recording that somebody sent must
// not steer the terminal.
func printable(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// milliseconds shows a time to the microsecond.
func milliseconds(o meter.Opt[time.Duration]) string {
	if !o.OK {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", float64(o.V)/float64(time.Millisecond))
}

func tokens(r *meter.Record) string {
	switch {
	case !r.OutputTokens.OK:
		return "-"
	case r.OutputSource == meter.SourceEstimate:
		return fmt.Sprintf("~%d", r.OutputTokens.V)
	}
	return fmt.Sprint(r.OutputTokens.V)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

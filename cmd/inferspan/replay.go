package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// replay turns recorded exchanges into records. A file that can't be read is
// reported, and the others are still replayed.
func replay(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("replay", "[--json] [--cut frames|bytes|SIZE|random:SEED] FILE...", stderr)
	asJSON := flags.Bool("json", false, "print the records as JSON, one a line")
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
	if len(files) == 0 {
		writef(stderr, "inferspan replay: no file named\n")
		flags.Usage()
		return exitUsage
	}

	code := 0
	out := newRecordWriter(stdout, *asJSON)
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

// recordWriter writes records as JSON lines, or as a table for a person.
type recordWriter struct {
	json  *bufio.Writer // nil for a table
	table *tabwriter.Writer
	rows  int
}

func newRecordWriter(w io.Writer, asJSON bool) *recordWriter {
	if asJSON {
		return &recordWriter{json: bufio.NewWriter(w)}
	}
	return &recordWriter{table: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

func (w *recordWriter) write(r *meter.Record) error {
	var err error
	if w.json != nil {
		_, err = w.json.Write(append(r.AppendJSON(nil), '\n'))
	} else {
		if w.rows == 0 {
			_, err = fmt.Fprintln(w.table, "NAME\tOUTCOME\tTTFT\tTPOT\tTOKENS\tSOURCE\tEVENTS")
		}
		if err == nil {
			_, err = fmt.Fprintf(w.table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", printable(r.Name), r.Outcome,
				milliseconds(r.FirstToken), milliseconds(meanTPOT(r)), tokens(r), orDash(string(r.OutputSource)), r.Events)
		}
		w.rows++
	}
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

func (w *recordWriter) flush() error {
	var err error
	if w.json != nil {
		err = w.json.Flush()
	} else {
		err = w.table.Flush()
	}
	if err != nil {
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

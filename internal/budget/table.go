package budget

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Row is one budget of the design and what came of it.
type Row struct {
	What string
	// Got is what was measured, Limit the most that is allowed, both in Unit.
	Got, Limit float64
	Unit       string
}

// Table is what a run of benchmarks came to. The zero value is empty.
type Table struct{ rows []Row }

// Add adds a row; one of the same name, of an earlier run, gives way.
func (t *Table) Add(r Row) {
	for i := range t.rows {
		if t.rows[i].What == r.What {
			t.rows[i] = r
			return
		}
	}
	t.rows = append(t.rows, r)
}

// Write writes the rows, and nothing where there are none.
func (t *Table) Write(to io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	text := []byte("what\tmeasured\tbudget\t\n")
	for _, r := range t.rows {
		verdict := "within"
		if r.Got > r.Limit {
			verdict = "ABOVE"
		}
		text = fmt.Appendf(text, "%s\t%.4g %s\t%.4g\t%s\n", r.What, r.Got, r.Unit, r.Limit, verdict)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the table of budgets: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the table of budgets: %w", err)
	}
	return nil
}

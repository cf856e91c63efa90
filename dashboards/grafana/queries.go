package grafana

import (
	"encoding/json"
	"fmt"
)

// Query is one query of the dashboard, as Grafana would run it.
type Query struct {
	Panel string // the title of its panel
	Expr  string // with the dashboard's variables in it
}

// Queries returns every query of a dashboard in the classic schema.
func Queries(dashboard []byte) ([]Query, error) {
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		return nil, fmt.Errorf("reading a dashboard: %w", err)
	}
	var all []Query
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Query{p.Title, t.Expr})
		}
	}
	return all, nil
}

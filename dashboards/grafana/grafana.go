// Package grafana makes the Grafana dashboard of Inferspan, in the classic
// schema, which every Grafana from 10 on imports.
//
//	query.go      PromQL over the metrics of package telemetry
//	panel.go      the forms of panels: a tile, a time series, percentiles
//	overview.go   what the dashboard shows, row by row
//	endpoints.go  the row of single model servers
//
// inferspan.json is made from it by go generate; tests check that it is
// current, that every metric and label it asks for is one that we export, and
// that a person can read it; the end-to-end test runs each of its queries.
package grafana

//go:generate go run ./generate inferspan.json

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The dashboard's variables, as queries name them.
const (
	varDatasource = "datasource"
	varJob        = "job"
	varInstance   = "instance"
	varModel      = "model"
	varPool       = "pool"
)

// JSON returns the dashboard as Grafana imports it.
func JSON() ([]byte, error) {
	d, err := overview().Build()
	if err != nil {
		return nil, fmt.Errorf("building the dashboard: %w", err)
	}
	number(&d)
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard: %w", err)
	}
	return append(b, '\n'), nil
}

// number gives each panel the id that links name it by, in the order of reading.
func number(d *dashboard.Dashboard) {
	for i := range d.Panels {
		id := uint32(i + 1)
		if row := d.Panels[i].RowPanel; row != nil {
			row.Id = id
		} else {
			d.Panels[i].Panel.Id = &id
		}
	}
}

// source is the data source that the reader chose.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${" + varDatasource + "}")}
}

// variables are the choices at the dashboard's top. The job is a single choice:
// a fleet that exports over OTLP and is scraped too would be counted twice.
func variables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder(varDatasource).
			Label("Data source").Type("prometheus"),
		dashboard.NewQueryVariableBuilder(varJob).
			Label("Job").
			Description("One of them: what is exported over OTLP and scraped too is there twice.").
			Datasource(source()).
			Query(labelValues(metricBuildInfo, "", "job")).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortAlphabeticalAsc),
		multi(varInstance, "Instance", labelValues(metricBuildInfo, `job=~"$job"`, "instance")).
			Description("The Inferspan that measured."),
		multi(varModel, "Model", labelValues(metricRequests, `job=~"$job"`, labelModel)).
			Description("The model as the client asked for it."),
		multi(varPool, "Pool", labelValues(metricRequests, `job=~"$job"`, labelPool)).
			Description("The pool of model servers that was chosen."),
	}
}

// multi is a variable of several values. All matches series without the label
// too: an exchange that nobody routed has no pool.
func multi(name, label string, query dashboard.StringOrMap) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(source()).
		Query(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).
		IncludeAll(true).
		AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: new(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// labelValues is a variable's query for the values of one label.
func labelValues(metric, selector, label string) dashboard.StringOrMap {
	q := fmt.Sprintf("label_values(%s{%s}, %s)", metric, selector, label)
	if selector == "" {
		q = fmt.Sprintf("label_values(%s, %s)", metric, label)
	}
	return dashboard.StringOrMap{String: &q}
}

package grafana

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Units, as Grafana names them.
const (
	unitSeconds  = "s"
	unitRequests = "reqps"
	unitTokens   = "tok/s"
	unitCount    = "short"
	unitShare    = "percentunit"
	unitPerSec   = "cps"
)

// Heights and widths on Grafana's grid of 24 columns.
const (
	tileHeight  = 4
	graphHeight = 8
	tileWidth   = 4
	third       = 8
	half        = 12
)

// The colours of what is well, what is not yet bad, and what is bad.
const (
	colorGood = "green"
	colorWarn = "orange"
	colorBad  = "red"
)

// query is one line, or group of lines, of a panel.
type query struct {
	expr     string
	legend   string
	exemplar bool // links single traces; on one quantile of a panel only
}

func (q query) build(i int) cog.Builder[variants.Dataquery] {
	b := prometheus.NewDataqueryBuilder().
		Datasource(source()).
		RefId(string(rune('A' + i))).
		Expr(q.expr).
		LegendFormat(q.legend).
		Range()
	if q.exemplar {
		b = b.Exemplar(true)
	}
	return b
}

// tile is one large number, its latest, with its recent course behind it.
// Thresholds, where given, are the values from which it is orange and red.
func tile(title, description, unit, expr string, thresholds ...float64) *stat.PanelBuilder {
	steps := []dashboard.Threshold{{Color: colorGood}}
	for i, t := range thresholds {
		steps = append(steps, dashboard.Threshold{Color: []string{colorWarn, colorBad}[i], Value: &t})
	}
	return stat.NewPanelBuilder().
		Title(title).
		Description(description).
		Datasource(source()).
		Height(tileHeight).
		Span(tileWidth).
		Unit(unit).
		NoValue("No traffic").
		Mappings([]dashboard.ValueMapping{{SpecialValueMap: &dashboard.SpecialValueMap{
			Type: dashboard.MappingTypeSpecialValue,
			Options: dashboard.DashboardSpecialValueMapOptions{
				Match:  dashboard.SpecialValueMatchNullAndNan,
				Result: dashboard.ValueMappingResult{Text: new("No traffic"), Color: new("text")},
			},
		}}}).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Orientation(common.VizOrientationAuto).
		GraphMode(common.BigValueGraphModeArea).
		ColorMode(common.BigValueColorModeValue).
		WithTarget(query{expr: expr, legend: title}.build(0))
}

// graph is a time series of width columns. empty says what it means that
// nothing is shown.
func graph(title, description, unit, empty string, width uint32, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(title).
		Description(description).
		Datasource(source()).
		Height(graphHeight).
		Span(width).
		Unit(unit).
		NoValue(empty).
		Min(0).
		LineWidth(1).
		FillOpacity(10).
		ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).
			DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).
			Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p = p.WithTarget(q.build(i))
	}
	return p
}

// stacked is a graph whose lines add up.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// percentiles is a graph of three quantiles of a histogram. The exemplars of the
// middle one lead to single traces.
func percentiles(title, description, metric string) *timeseries.PanelBuilder {
	var queries []query
	for _, q := range []float64{.5, .95, .99} {
		queries = append(queries, query{
			expr:     quantile(q, metric, chosen),
			legend:   fmt.Sprintf("p%g", q*100),
			exemplar: q == .95,
		})
	}
	return graph(title, description, unitSeconds, "No traffic", third, queries...)
}

// colored gives the lines of some names a colour, in shades.
func colored(p *timeseries.PanelBuilder, color string, names ...string) *timeseries.PanelBuilder {
	return p.OverrideByRegexp("^("+strings.Join(names, "|")+")$", []dashboard.DynamicConfigValue{{
		Id:    "color",
		Value: map[string]any{"mode": "shades", "fixedColor": color},
	}})
}

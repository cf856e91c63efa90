// Package series knows what Prometheus calls what Inferspan exports, for the tests
// that hold dashboards and alerts to it.
package series

import (
	"fmt"
	"slices"

	"github.com/prometheus/otlptranslator"

	"github.com/inferspan/inferspan/telemetry"
)

// Exported returns the series that there can be, each with the labels that it can
// have.
func Exported() (map[string][]string, error) {
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	labels := otlptranslator.LabelNamer{}
	series := map[string][]string{}
	for _, m := range telemetry.Metrics() {
		var kind otlptranslator.MetricType = otlptranslator.MetricTypeGauge
		suffixes := []string{""}
		switch m.Kind {
		case telemetry.Histogram:
			kind, suffixes = otlptranslator.MetricTypeHistogram, []string{"_bucket", "_sum", "_count"}
		case telemetry.Counter:
			kind = otlptranslator.MetricTypeMonotonicCounter
		case telemetry.ObservableUpDown:
			kind = otlptranslator.MetricTypeNonMonotonicCounter
		case telemetry.Gauge:
		}
		name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
		if err != nil {
			return nil, fmt.Errorf("naming %s: %w", m.Name, err)
		}
		attributes := slices.Clone(m.Attributes)
		if m.Common {
			attributes = append(attributes, "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "inferspan.pool")
		}
		has := []string{"job", "instance"}
		for _, a := range attributes {
			l, err := labels.Build(a)
			if err != nil {
				return nil, fmt.Errorf("naming %s of %s: %w", a, m.Name, err)
			}
			has = append(has, l)
		}
		for _, s := range suffixes {
			series[name+s] = has
			if s == "_bucket" {
				series[name+s] = append(slices.Clone(has), "le")
			}
		}
	}
	return series, nil
}

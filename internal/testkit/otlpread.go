package testkit

import (
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Attr returns the value of an attribute: string, bool, int64, float64 or a
// []any of them. It is false where there is none of that name.
func Attr(attrs []*common.KeyValue, name string) (any, bool) {
	for _, kv := range attrs {
		if kv.GetKey() == name {
			return value(kv.GetValue()), true
		}
	}
	return nil, false
}

// HasAttrs tells whether all of want are among attrs, with these values.
// Values are of type string, bool, int64 or float64.
func HasAttrs(attrs []*common.KeyValue, want map[string]any) bool {
	for name, w := range want {
		if got, ok := Attr(attrs, name); !ok || got != w {
			return false
		}
	}
	return true
}

func value(v *common.AnyValue) any {
	switch x := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return x.StringValue
	case *common.AnyValue_BoolValue:
		return x.BoolValue
	case *common.AnyValue_IntValue:
		return x.IntValue
	case *common.AnyValue_DoubleValue:
		return x.DoubleValue
	case *common.AnyValue_ArrayValue:
		all := make([]any, len(x.ArrayValue.GetValues()))
		for i, e := range x.ArrayValue.GetValues() {
			all[i] = value(e)
		}
		return all
	default:
		return nil
	}
}

// SpanEvents returns the span's events of the given name.
func SpanEvents(s Span, name string) []*trace.Span_Event {
	return matching(s.GetEvents(), func(e *trace.Span_Event) bool { return e.GetName() == name })
}

// Point is one data point of a metric.
type Point struct {
	Attributes []*common.KeyValue
	// Value is the number, or the sum of a histogram.
	Value float64
	// Count is the number of samples of a histogram.
	Count uint64
}

// Points returns the metric's data points, of numbers and of histograms.
func Points(m Metric) []Point {
	var points []Point
	numbers := func(all []*metrics.NumberDataPoint) {
		for _, p := range all {
			v := p.GetAsDouble()
			if i, ok := p.GetValue().(*metrics.NumberDataPoint_AsInt); ok {
				v = float64(i.AsInt)
			}
			points = append(points, Point{Attributes: p.GetAttributes(), Value: v})
		}
	}
	numbers(m.GetSum().GetDataPoints())
	numbers(m.GetGauge().GetDataPoints())
	for _, p := range m.GetHistogram().GetDataPoints() {
		points = append(points, Point{Attributes: p.GetAttributes(), Value: p.GetSum(), Count: p.GetCount()})
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		points = append(points, Point{Attributes: p.GetAttributes(), Value: p.GetSum(), Count: p.GetCount()})
	}
	return points
}

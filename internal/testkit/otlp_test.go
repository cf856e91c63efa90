package testkit

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func TestSinkKeepsSpansAndMetrics(t *testing.T) {
	sink, err := NewSink()
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	ctx := t.Context()

	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(sink.Addr()), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	_, span := tp.Tracer("t").Start(ctx, "chat tiny", trace.WithAttributes(attribute.Int("n", 3), attribute.StringSlice("f", []string{"stop"})))
	span.AddEvent("first")
	span.End()
	if err := tp.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := sink.WaitSpan(ctx, func(s Span) bool { return HasAttrs(s.GetAttributes(), map[string]any{"n": int64(3)}) })
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := Attr(got.GetAttributes(), "f"); got.GetName() != "chat tiny" || len(SpanEvents(got, "first")) != 1 || f.([]any)[0] != "stop" {
		t.Errorf("got %v", got)
	}
	if _, ok := Attr(got.Resource, "service.name"); !ok {
		t.Error("the resource was lost")
	}

	points, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(sink.Addr()), otlpmetricgrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points, sdkmetric.WithInterval(time.Hour))))
	counter, err := mp.Meter("t").Int64Counter("requests")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(ctx, 2, metric.WithAttributes(attribute.String("outcome", "ok")))
	if err := mp.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := sink.WaitMetric(ctx, "requests", func(m Metric) bool { return len(Points(m)) == 1 })
	if err != nil {
		t.Fatal(err)
	}
	if p := Points(m)[0]; p.Value != 2 || !HasAttrs(p.Attributes, map[string]any{"outcome": "ok"}) {
		t.Errorf("got %+v", p)
	}
}

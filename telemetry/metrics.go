package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// metricInterval is how often metrics go out over OTLP unless
// OTEL_METRIC_EXPORT_INTERVAL says otherwise.
const metricInterval = 15 * time.Second

// newMetrics returns the provider of instruments and the page that shows them.
func newMetrics(ctx context.Context, env environment, res *resource.Resource, log *slog.Logger) (*sdkmetric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	page, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		// The default depends on a global of another module.
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, nil, fmt.Errorf("making the metrics page: %w", err)
	}
	options := []sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(page),
		sdkmetric.WithCardinalityLimit(cardinalityLimit),
	}
	if env.exports("METRICS") {
		exporter, err := env.newMetricExporter(ctx)
		if err != nil {
			return nil, nil, err
		}
		var every []sdkmetric.PeriodicReaderOption
		if env.value("OTEL_METRIC_EXPORT_INTERVAL") == "" {
			every = append(every, sdkmetric.WithInterval(metricInterval))
		}
		options = append(options, sdkmetric.WithReader(
			sdkmetric.NewPeriodicReader(&loggingExporter{Exporter: exporter, log: log}, every...)))
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, // without it there are no exemplars
		ErrorHandling:     promhttp.ContinueOnError,
	})
	return sdkmetric.NewMeterProvider(options...), handler, nil
}

// emptyMetrics is the page of a disabled SDK.
func emptyMetrics() http.Handler {
	return promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{})
}

func (e environment) newMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	p, err := e.protocol("METRICS")
	if err != nil {
		return nil, err
	}
	if p == protocolGRPC {
		exporter, err := otlpmetricgrpc.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("making the OTLP gRPC metric exporter: %w", err)
		}
		return exporter, nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("making the OTLP HTTP metric exporter: %w", err)
	}
	return exporter, nil
}

// loggingExporter reports failed exports, now and then.
type loggingExporter struct {
	sdkmetric.Exporter

	log      *slog.Logger
	failures sampler
}

func (x *loggingExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := x.Exporter.Export(ctx, m)
	if err != nil {
		// The next export has the same sums: nothing is lost with this one.
		if leftOut, ok := x.failures.due(); ok {
			x.log.Warn("exporting metrics failed", "error", err, "reports_left_out", leftOut)
		}
	}
	return nil
}

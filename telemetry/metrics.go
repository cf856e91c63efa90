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
	"google.golang.org/grpc/credentials"
)

// metricInterval is how often metrics go out over OTLP unless
// OTEL_METRIC_EXPORT_INTERVAL says otherwise.
const metricInterval = 15 * time.Second

// metricsParts are what shows metrics outside.
type metricsParts struct {
	provider *sdkmetric.MeterProvider
	page     http.Handler
	gaps     *gapStore // nil: the SDK's instruments take them
	// endpoints are theirs, which the SDK could not end.
	endpoints *endpointStore
	guard     *guard // of all that readers call
}

func newMetrics(ctx context.Context, env environment, res *resource.Resource, c Config) (metricsParts, error) {
	var exporter sdkmetric.Exporter
	if env.exports("METRICS") {
		x, err := env.newMetricExporter(ctx)
		if err != nil {
			return metricsParts{}, err
		}
		exporter = &loggingExporter{Exporter: x, log: c.Logger}
	}
	return readMetrics(env, res, c, exporter)
}

// readMetrics makes the readers: the page, and where there is an exporter, what
// sends to it.
func readMetrics(env environment, res *resource.Resource, c Config, exporter sdkmetric.Exporter) (metricsParts, error) {
	parts := metricsParts{endpoints: newEndpointStore(c.Endpoints), guard: &guard{log: c.Logger}}
	pageOptions := []otelprometheus.Option{
		// The default depends on a global of another module.
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithProducer(parts.guard.producer(parts.endpoints.producer(metricdata.CumulativeTemporality, c.Version))),
	}
	var every []sdkmetric.PeriodicReaderOption
	var histograms metricdata.Temporality // that the exporter wants
	if exporter != nil {
		histograms = exporter.Temporality(sdkmetric.InstrumentKindHistogram)
		every = append(every, sdkmetric.WithProducer(parts.guard.producer(parts.endpoints.producer(histograms, c.Version))))
	}
	if exporter == nil || explicit(exporter) {
		parts.gaps = newGapStore(env, c.Version, c.ClientMetrics)
		pageOptions = append(pageOptions, otelprometheus.WithProducer(parts.guard.producer(parts.gaps.producer(metricdata.CumulativeTemporality))))
		if exporter != nil {
			every = append(every, sdkmetric.WithProducer(parts.guard.producer(parts.gaps.producer(histograms))))
		}
	}
	registry := prometheus.NewRegistry()
	page, err := otelprometheus.New(append(pageOptions, otelprometheus.WithRegisterer(registry))...)
	if err != nil {
		return metricsParts{}, fmt.Errorf("making the metrics page: %w", err)
	}
	options := []sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(page),
		sdkmetric.WithCardinalityLimit(cardinalityLimit),
	}
	if exporter != nil {
		if env.value("OTEL_METRIC_EXPORT_INTERVAL") == "" {
			every = append(every, sdkmetric.WithInterval(metricInterval))
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, every...)))
	}
	parts.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, // without it there are no exemplars
		ErrorHandling:     promhttp.ContinueOnError,
	})
	parts.provider = sdkmetric.NewMeterProvider(options...)
	return parts, nil
}

// explicit tells whether x asks for histograms with the buckets that they have.
func explicit(x sdkmetric.Exporter) bool {
	switch x.Aggregation(sdkmetric.InstrumentKindHistogram).(type) {
	case sdkmetric.AggregationDefault, sdkmetric.AggregationExplicitBucketHistogram:
		return true
	}
	return false
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
	secure := e.exportTLS("METRICS")
	if p == protocolGRPC {
		options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithDialOption(connect)}
		if secure != nil {
			options = append(options, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(secure)))
		}
		exporter, err := otlpmetricgrpc.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("making the OTLP gRPC metric exporter: %w", err)
		}
		return exporter, nil
	}
	var options []otlpmetrichttp.Option
	if secure != nil {
		options = append(options, otlpmetrichttp.WithTLSClientConfig(secure))
	}
	exporter, err := otlpmetrichttp.New(ctx, options...)
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

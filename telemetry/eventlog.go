package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials"
)

// eventLog makes log records of events. It is not safe for concurrent use.
type eventLog struct {
	logger  otellog.Logger
	emitted *emittedRecords
}

// emittedRecords collects what the SDK's logger emits.
type emittedRecords struct{ records []sdklog.Record }

var _ sdklog.Processor = (*emittedRecords)(nil)

func (*emittedRecords) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (*emittedRecords) Shutdown(context.Context) error                         { return nil }
func (*emittedRecords) ForceFlush(context.Context) error                       { return nil }

func (e *emittedRecords) OnEmit(_ context.Context, r *sdklog.Record) error {
	e.records = append(e.records, r.Clone())
	return nil
}

func newEventLog(res *resource.Resource, version string) *eventLog {
	l := &eventLog{emitted: &emittedRecords{}}
	options := []sdklog.LoggerProviderOption{sdklog.WithProcessor(l.emitted)}
	if res != nil {
		options = append(options, sdklog.WithResource(res))
	}
	l.logger = sdklog.NewLoggerProvider(options...).Logger(scopeName, otellog.WithInstrumentationVersion(version))
	return l
}

// emit makes a record of e, which belongs to the span of ctx.
func (l *eventLog) emit(ctx context.Context, at time.Time, e event) {
	var r otellog.Record
	r.SetEventName(e.name)
	r.SetTimestamp(at)
	r.SetObservedTimestamp(at)
	r.SetSeverity(otellog.SeverityInfo)
	if e.name == eventError {
		r.SetSeverity(otellog.SeverityError)
	}
	r.AddAttributes(e.attributes...)
	l.logger.Emit(ctx, r)
}

// take returns what was emitted since it was last called.
func (l *eventLog) take() []sdklog.Record {
	if l == nil {
		return nil
	}
	records := l.emitted.records
	l.emitted.records = nil
	return records
}

// emit is where events go: onto the span, into the log, or both.
func (m *spanMaker) emit(ctx context.Context, span trace.Span, start time.Time, events []event) {
	for _, e := range events {
		at := start.Add(e.at)
		if m.onSpan {
			span.AddEvent(e.name, trace.WithTimestamp(at), trace.WithAttributes(e.attributes...))
		}
		if m.log != nil {
			m.log.emit(ctx, at, e)
		}
	}
}

// logsEvents tells whether events become log records: where that is asked for,
// and there is a way for logs.
func (e environment) logsEvents(events string) bool {
	if events == eventsSpan {
		return false
	}
	if !e.exports("LOGS") {
		e.log.Warn("events stay on the span: the environment says that no logs are exported", "trace_events", events)
		return false
	}
	return true
}

func (e environment) newLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	p, err := e.protocol("LOGS")
	if err != nil {
		return nil, err
	}
	secure := e.exportTLS("LOGS")
	if p == protocolGRPC {
		options := []otlploggrpc.Option{otlploggrpc.WithDialOption(connect)}
		if secure != nil {
			options = append(options, otlploggrpc.WithTLSCredentials(credentials.NewTLS(secure)))
		}
		exporter, err := otlploggrpc.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("making the OTLP gRPC log exporter: %w", err)
		}
		return exporter, nil
	}
	var options []otlploghttp.Option
	if secure != nil {
		options = append(options, otlploghttp.WithTLSClientConfig(secure))
	}
	exporter, err := otlploghttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("making the OTLP HTTP log exporter: %w", err)
	}
	return exporter, nil
}

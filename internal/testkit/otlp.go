package testkit

import (
	"context"
	"fmt"
	"net"
	"sync"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Sink is an OTLP receiver over gRPC that keeps all it gets. It is safe for
// concurrent use.
type Sink struct {
	ln     net.Listener
	server *grpc.Server
	served chan struct{}

	mu      sync.Mutex
	spans   []Span
	metrics []Metric
	logs    []*logs.LogRecord
	more    chan struct{} // closed and replaced at each export
}

// Span is a span with the resource that it came with.
type Span struct {
	*trace.Span
	Resource []*common.KeyValue
}

// Metric is one export of a metric, with its resource.
type Metric struct {
	*metrics.Metric
	Resource []*common.KeyValue
}

// NewSink starts a receiver on a free port.
func NewSink() (*Sink, error) { return NewSinkAt("127.0.0.1:0") }

// NewSinkAt starts a receiver at addr: one that was away and is back.
func NewSinkAt(addr string) (*Sink, error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening for OTLP: %w", err)
	}
	s := &Sink{ln: ln, server: grpc.NewServer(), served: make(chan struct{}), more: make(chan struct{})}
	collectortrace.RegisterTraceServiceServer(s.server, traceService{sink: s})
	collectormetrics.RegisterMetricsServiceServer(s.server, metricsService{sink: s})
	collectorlogs.RegisterLogsServiceServer(s.server, logsService{sink: s})
	go func() {
		defer close(s.served)
		_ = s.server.Serve(ln) // only Close ends it
	}()
	return s, nil
}

// Addr returns the receiver's ip:port.
func (s *Sink) Addr() string { return s.ln.Addr().String() }

// Env returns the OTEL_* variables that make a process export here, soon.
func (s *Sink) Env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + s.Addr(),
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_METRIC_EXPORT_INTERVAL=500",
	}
}

// Close ends the receiver.
func (s *Sink) Close() {
	s.server.Stop()
	<-s.served
}

// Spans returns the spans that match, in the order of their arrival.
func (s *Sink) Spans(match func(Span) bool) []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return matching(s.spans, match)
}

// WaitSpan returns the first span that matches, as soon as there is one.
func (s *Sink) WaitSpan(ctx context.Context, match func(Span) bool) (Span, error) {
	var found []Span
	err := s.wait(ctx, func() bool {
		found = matching(s.spans, match)
		return len(found) > 0
	})
	if err != nil {
		return Span{}, fmt.Errorf("waiting for a span: %w", err)
	}
	return found[0], nil
}

// Metrics returns all exports of the named metric, in the order of their arrival.
func (s *Sink) Metrics(name string) []Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return matching(s.metrics, func(m Metric) bool { return m.GetName() == name })
}

// WaitMetric returns the first export of the named metric that matches, as
// soon as there is one.
func (s *Sink) WaitMetric(ctx context.Context, name string, match func(Metric) bool) (Metric, error) {
	var found []Metric
	err := s.wait(ctx, func() bool {
		found = matching(s.metrics, func(m Metric) bool { return m.GetName() == name && match(m) })
		return len(found) > 0
	})
	if err != nil {
		return Metric{}, fmt.Errorf("waiting for the metric %s: %w", name, err)
	}
	return found[0], nil
}

// Logs returns all log records.
func (s *Sink) Logs() []*logs.LogRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*logs.LogRecord(nil), s.logs...)
}

// wait returns when ok, called with the lock held, is true.
func (s *Sink) wait(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, more := ok(), s.more
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Sink) add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.more)
	s.more = make(chan struct{})
}

func matching[T any](all []T, match func(T) bool) []T {
	var found []T
	for _, x := range all {
		if match(x) {
			found = append(found, x)
		}
	}
	return found
}

type traceService struct {
	collectortrace.UnimplementedTraceServiceServer
	sink *Sink
}

func (t traceService) Export(_ context.Context, r *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	t.sink.add(func() {
		for _, of := range r.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					t.sink.spans = append(t.sink.spans, Span{span, of.GetResource().GetAttributes()})
				}
			}
		}
	})
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

type metricsService struct {
	collectormetrics.UnimplementedMetricsServiceServer
	sink *Sink
}

func (m metricsService) Export(_ context.Context, r *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	m.sink.add(func() {
		for _, of := range r.GetResourceMetrics() {
			for _, scope := range of.GetScopeMetrics() {
				for _, metric := range scope.GetMetrics() {
					m.sink.metrics = append(m.sink.metrics, Metric{metric, of.GetResource().GetAttributes()})
				}
			}
		}
	})
	return &collectormetrics.ExportMetricsServiceResponse{}, nil
}

type logsService struct {
	collectorlogs.UnimplementedLogsServiceServer
	sink *Sink
}

func (l logsService) Export(_ context.Context, r *collectorlogs.ExportLogsServiceRequest) (*collectorlogs.ExportLogsServiceResponse, error) {
	l.sink.add(func() {
		for _, of := range r.GetResourceLogs() {
			for _, scope := range of.GetScopeLogs() {
				l.sink.logs = append(l.sink.logs, scope.GetLogRecords()...)
			}
		}
	})
	return &collectorlogs.ExportLogsServiceResponse{}, nil
}

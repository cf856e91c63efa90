package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// Telemetry takes what exchanges tell and brings it out. Its methods are safe
// for concurrent use; none but Shutdown waits for anything.
type Telemetry struct {
	sampler     sdktrace.Sampler
	rules       atomic.Pointer[rules]
	labels      *labels
	instruments *instruments
	endpoints   *endpointStore
	config      *configMetrics
	phases      sync.Map // phase -> recorder
	reasons     *boundedNames
	intake      *queue
	worked      chan struct{}
	export      *export // nil: spans go nowhere
	metrics     *sdkmetric.MeterProvider
	handler     http.Handler
	log         *slog.Logger
}

// New makes a Telemetry. What is exported, and where to, is told by the
// environment; with no endpoint there, nothing is and nothing is tried.
func New(ctx context.Context, c Config) (*Telemetry, error) {
	return newTelemetry(ctx, c, nil)
}

// newTelemetry takes an exporter of spans in place of the environment's.
func newTelemetry(ctx context.Context, c Config, exporter sdktrace.SpanExporter) (*Telemetry, error) {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	env := environment{get: c.Getenv, log: c.Logger}
	sampler := env.sampler()
	first, err := newRules(c, sampler, nil)
	if err != nil {
		return nil, err
	}
	res, err := newResource(ctx, env, c.Version)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(&sdkComplaints{log: c.Logger})
	t := &Telemetry{
		sampler: sampler,
		reasons: newBoundedNames(maxErrorTypes),
		intake:  newQueue(intakeBytes, 0),
		worked:  make(chan struct{}),
		log:     c.Logger,
	}
	t.rules.Store(first)
	if err := t.openMetrics(ctx, c, env, res); err != nil {
		return nil, err
	}
	if exporter == nil && env.exports("TRACES") {
		if exporter, err = env.newSpanExporter(ctx); err != nil {
			return nil, errors.Join(err, t.closeMetrics(ctx))
		}
	}
	if exporter != nil {
		var logs sdklog.Exporter
		if !env.logsEvents(c.Trace.Events) {
			c.Trace.Events = eventsSpan
		} else if logs, err = env.newLogExporter(ctx); err != nil {
			return nil, errors.Join(err, exporter.Shutdown(ctx), t.closeMetrics(ctx))
		}
		t.instruments.showExport()
		t.export = startExport(env.exportOptions(), queueBytes-intakeBytes,
			newSpanMaker(c.Trace, res, c.Version), exporter, logs, t.instruments, c.Logger)
	}
	go t.work()
	return t, nil
}

func (t *Telemetry) openMetrics(ctx context.Context, c Config, env environment, res *resource.Resource) error {
	var provider metric.MeterProvider = noop.NewMeterProvider()
	parts := metricsParts{page: emptyMetrics(), endpoints: newEndpointStore(c.Endpoints), guard: &guard{log: c.Logger}}
	if !env.disabled() {
		var err error
		if parts, err = newMetrics(ctx, env, res, c); err != nil {
			return err
		}
		provider = parts.provider
	}
	t.metrics, t.handler, t.endpoints = parts.provider, parts.page, parts.endpoints
	mt := provider.Meter(scopeName, metric.WithInstrumentationVersion(c.Version))
	err := func() (err error) {
		if t.instruments, err = newInstruments(mt, parts.gaps, c); err != nil {
			return err
		}
		parts.guard.counting.Store(t)
		if t.config, err = newConfigMetrics(mt); err != nil {
			return err
		}
		if err := observeTargets(mt, parts.guard, func() sloList { return t.rules.Load().slos }); err != nil {
			return err
		}
		t.labels = newLabels(c.Models, c.Pools)
		if c.Endpoints != nil {
			if err := observeEndpoints(mt, parts.guard, c.Endpoints); err != nil {
				return err
			}
		}
		if c.Discovery != nil {
			if err := observeDiscovery(mt, parts.guard, c.Discovery); err != nil {
				return err
			}
		}
		if c.ClockOffset != nil {
			if err := observeOffset(mt, parts.guard, c.ClockOffset); err != nil {
				return err
			}
		}
		if c.Live == nil {
			return nil
		}
		return observeLive(mt, parts.guard, t.labels, c.Live)
	}()
	if err != nil {
		return errors.Join(err, t.closeMetrics(ctx))
	}
	return nil
}

func (t *Telemetry) closeMetrics(ctx context.Context) error {
	if t.metrics == nil {
		return nil
	}
	if err := t.metrics.Shutdown(ctx); err != nil {
		return fmt.Errorf("stopping the metrics: %w", err)
	}
	return nil
}

// MetricsHandler serves the metrics in Prometheus's and in OpenMetrics's text
// form; the latter has the exemplars.
func (t *Telemetry) MetricsHandler() http.Handler { return t.handler }

// End takes the record of an exchange. Where the worker is behind, the caller
// does its work: it takes some microseconds and loses nothing.
func (t *Telemetry) End(r *meter.Record) {
	e := newEntry(r, t.rules.Load())
	if ok, _ := t.intake.put(e); !ok {
		t.account(e)
	}
}

// Overhead records how long a message of the named phase took us.
func (t *Telemetry) Overhead(phase string, d time.Duration) {
	o, ok := t.phases.Load(phase)
	if !ok {
		o, _ = t.phases.LoadOrStore(phase, t.instruments.overheadOf(phase))
	}
	if record, ok := o.(recorder); ok {
		record(d)
	}
}

// Count adds one to what went wrong inside, by what it was.
func (t *Telemetry) Count(event string) {
	reason, _ := t.reasons.get(event, true)
	t.instruments.faults.Add(context.Background(), 1, metric.WithAttributes(keyReason.String(reason)))
}

// Shutdown brings out what waits and stops. Where ctx has a deadline, spans get
// two thirds of the time and the last metrics the rest; spans that are then
// still here are dropped and counted.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.intake.close()
	<-t.worked
	var spans error
	if t.export != nil {
		spansCtx, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok {
			spansCtx, cancel = context.WithTimeout(ctx, time.Until(deadline)*2/3)
		}
		spans = t.export.shutdown(spansCtx)
		cancel()
	}
	return errors.Join(spans, t.closeMetrics(ctx))
}

// sdkComplaints takes what the SDK reports and returns to no one.
type sdkComplaints struct {
	log      *slog.Logger
	failures sampler
}

func (s *sdkComplaints) Handle(err error) {
	if leftOut, ok := s.failures.due(); ok {
		s.log.Warn("the OpenTelemetry SDK reports a fault", "error", err, "reports_left_out", leftOut)
	}
}

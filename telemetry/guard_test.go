package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/inferspan/inferspan/processor/meter"
)

const panicsSeries = `inferspan_processor_faults_total{inferspan_reason="panic"}`

// A panic of what a metric is read from costs that metric, is counted and told,
// and ends when its reason does.
func TestCallbackPanics(t *testing.T) {
	for name, c := range map[string]struct {
		observe func(c *Config, check func())
		series  string
		panics  float64 // in one collection
	}{
		"live": {series: `inferspan_request_active{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_pool="default"}`, panics: 1,
			observe: func(c *Config, check func()) {
				c.Live = func() []meter.Live {
					check()
					return []meter.Live{{Labels: meter.Labels{Operation: "chat", Model: "llama", Pool: "default"}}}
				}
			}},
		"endpoints, by callback and producer": {series: `inferspan_endpoint_healthy{inferspan_endpoint="10.0.0.1:8000",inferspan_pool="default"}`, panics: 2,
			observe: func(c *Config, check func()) {
				c.Endpoints = func() []Endpoint {
					check()
					return []Endpoint{{Pool: "default", Address: "10.0.0.1:8000", Healthy: true}}
				}
			}},
		"discovery": {series: `inferspan_discovery_current{inferspan_pool="default"}`, panics: 1,
			observe: func(c *Config, check func()) {
				c.Discovery = func() []Discovery { check(); return onePool() }
			}},
		"clock": {series: `inferspan_envoy_clock_offset_seconds`, panics: 1,
			observe: func(c *Config, check func()) {
				c.ClockOffset = func() (time.Duration, bool) { check(); return time.Second, true }
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			broken := true
			cfg := quiet()
			cfg.Pools = []string{"default"}
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.observe(&cfg, func() {
				if broken {
					panic("injected")
				}
			})
			tel := open(t, cfg, nil)
			page := scrape(t, tel, "")
			if strings.Contains(page, c.series) || !strings.Contains(page, "\ninferspan_build_info") {
				t.Errorf("the page is %s", page)
			}
			if s := log.String(); strings.Count(s, "panic caught") != int(c.panics) || !strings.Contains(s, "guard_test.go") {
				t.Errorf("the log is %q", s)
			}
			broken = false
			page = scrape(t, tel, "")
			if got := sample(t, page, panicsSeries); got != c.panics {
				t.Errorf("%v panics were counted, want %v", got, c.panics)
			}
			if got := sample(t, page, c.series); got != 1 {
				t.Errorf("%s is %v after it", c.series, got)
			}
			shut(t, tel)
		})
	}
}

func TestTargetsPanic(t *testing.T) {
	tel := open(t, quiet(), nil)
	first := tel.rules.Swap(nil) // without what tells the targets
	if page := scrape(t, tel, ""); sample(t, page, panicsSeries) != 1 {
		t.Errorf("the page is %s", page)
	}
	tel.rules.Store(first)
	shut(t, tel)
}

// A panic of a producer costs its own metrics, in what is exported too.
func TestProducerPanics(t *testing.T) {
	var log bytes.Buffer
	x := &shapedExporter{aggregation: sdkmetric.AggregationDefault{}, temporality: metricdata.CumulativeTemporality}
	parts, err := readMetrics(environment{get: environ()}, nil, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, x)
	if err != nil {
		t.Fatal(err)
	}
	i, err := newInstruments(parts.provider.Meter(scopeName), parts.gaps, Config{})
	if err != nil {
		t.Fatal(err)
	}
	tel := &Telemetry{instruments: i, reasons: newBoundedNames(1), handler: parts.page}
	parts.guard.counting.Store(tel)
	parts.gaps.overhead.series = []*gapSeries{nil}
	page := scrape(t, tel, "")
	if err := parts.provider.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
	if strings.Contains(page, "inferspan_processor_overhead") || x.got[mOverhead.Name] != nil {
		t.Error("it is shown")
	}
	// The page's panic came before the export, which shows it.
	faults, _ := x.got[mFaults.Name].(metricdata.Sum[int64])
	if len(faults.DataPoints) != 1 || faults.DataPoints[0].Value != 1 {
		t.Errorf("the exported faults are %+v", faults)
	}
	if n := strings.Count(log.String(), "panic caught"); n != 2 {
		t.Errorf("the log has %d panics, want the page's and the export's", n)
	}
	if err := parts.provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Before there is anything to count with, a panic is told all the same.
func TestGuardBeforeInstruments(t *testing.T) {
	var log bytes.Buffer
	g := &guard{log: slog.New(slog.NewTextHandler(&log, nil))}
	out, err := g.producer((*gapProducer)(nil)).Produce(t.Context())
	if out != nil || err != nil || !strings.Contains(log.String(), "panic caught") {
		t.Errorf("got %v, %v, the log is %q", out, err, log.String())
	}
}

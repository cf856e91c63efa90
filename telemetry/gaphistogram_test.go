package telemetry

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/inferspan/inferspan/processor/meter"
)

// oneBucket is n samples in bucket i that together are sum.
func oneBucket(i int, n int64, sum time.Duration) []meter.GapBucket {
	b := make([]meter.GapBucket, len(bucketsGap)+1)
	b[i] = meter.GapBucket{Count: n, Sum: sum}
	return b
}

func points(t *testing.T, r *gapReader) []metricdata.HistogramDataPoint[float64] {
	t.Helper()
	m, ok := r.collect()
	data, isHistogram := m.Data.(metricdata.Histogram[float64])
	if !isHistogram || ok != (len(data.DataPoints) > 0) {
		t.Fatalf("%T, %v", m.Data, ok)
	}
	return data.DataPoints
}

// TestGapReaders: a cumulative reader sees all since the beginning, a delta
// reader beside it what is new, and nothing where nothing is.
func TestGapReaders(t *testing.T) {
	h := newGapHistogram(mITL, 10, true)
	all := newGapReader(h, metricdata.CumulativeTemporality)
	news := newGapReader(h, metricdata.DeltaTemporality)
	o := newOptions(attribute.String("a", "b"))
	h.add(context.Background(), o, oneBucket(6, 3, 40*ms))
	expect := func(r *gapReader, count uint64, sum float64) {
		t.Helper()
		p := points(t, r)
		if count == 0 && len(p) == 0 {
			return
		}
		if len(p) != 1 || p[0].Count != count || p[0].BucketCounts[6] != count || p[0].Sum != sum {
			t.Errorf("%+v, want %d samples of %v s", p, count, sum)
		}
	}
	expect(all, 3, .04)
	expect(news, 3, .04)
	expect(news, 0, 0)
	h.add(context.Background(), o, oneBucket(6, 1, 14*ms))
	expect(all, 4, .054)
	expect(news, 1, .014)
	h.add(context.Background(), newOptions(attribute.String("a", "c")), oneBucket(6, 1, 14*ms))
	expect(news, 1, .014)
}

// TestGapSum: a sum beyond 64 bits of nanoseconds stays right.
func TestGapSum(t *testing.T) {
	h := newGapHistogram(mITL, 10, false)
	r := newGapReader(h, metricdata.CumulativeTemporality)
	const century = 100 * 365 * 24 * time.Hour
	for range 5 {
		h.add(context.Background(), newOptions(), oneBucket(25, 1, century))
	}
	if got, want := points(t, r)[0].Sum, 5*century.Seconds(); got != want {
		t.Errorf("%v s, want %v", got, want)
	}
}

// TestGapSeriesAreBounded: the surplus is one series, by the specification's
// name, and nothing of it is lost.
func TestGapSeriesAreBounded(t *testing.T) {
	h := newGapHistogram(mITL, 3, false)
	for i := range 10 {
		h.add(context.Background(), newOptions(attribute.String("a", strconv.Itoa(i))), oneBucket(0, 1, ms))
	}
	got := points(t, newGapReader(h, metricdata.CumulativeTemporality))
	if len(got) != 3 || !got[2].Attributes.Equals(&overflowSet) || got[2].Count != 8 {
		t.Errorf("%+v", got)
	}
}

func TestGapExemplars(t *testing.T) {
	tr := meter.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Sampled: true}
	for _, on := range []bool{true, false} {
		h := newGapHistogram(mITL, 3, on)
		all, news := newGapReader(h, metricdata.CumulativeTemporality), newGapReader(h, metricdata.DeltaTemporality)
		h.add(context.Background(), newOptions(), oneBucket(1, 1, ms))
		if e := points(t, news)[0].Exemplars; len(e) != 0 {
			t.Errorf("exemplars of no span: %+v", e)
		}
		h.add(exemplarContext(&tr), newOptions(), oneBucket(6, 2, 26*ms))
		for name, e := range map[string][]metricdata.Exemplar[float64]{
			"cumulative": points(t, all)[0].Exemplars, "delta": points(t, news)[0].Exemplars,
		} {
			if on != (len(e) == 1 && e[0].Value == .013 && [16]byte(e[0].TraceID) == tr.TraceID && [8]byte(e[0].SpanID) == tr.SpanID) {
				t.Errorf("%s, allowed %v: %+v", name, on, e)
			}
		}
		h.add(context.Background(), newOptions(), oneBucket(6, 2, 26*ms))
		if e := points(t, news)[0].Exemplars; len(e) != 0 {
			t.Errorf("delta: exemplars of the time before: %+v", e)
		}
	}
}

// TestGapConcurrentSafe: what is added while readers collect is counted once.
func TestGapConcurrentSafe(t *testing.T) {
	h := newGapHistogram(mITL, 10, true)
	news := newGapReader(h, metricdata.DeltaTemporality)
	o := newOptions()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 500 {
				h.add(context.Background(), o, oneBucket(3, 2, 10*ms))
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	var count uint64
	collect := func() {
		for _, p := range points(t, news) {
			count += p.Count
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		collect()
	}
	if count != 4000 {
		t.Errorf("%d samples, want 4000", count)
	}
}

// shapedExporter asks for an aggregation and a temporality, and keeps what it gets.
type shapedExporter struct {
	aggregation sdkmetric.Aggregation
	temporality metricdata.Temporality
	got         map[string]metricdata.Aggregation
}

func (x *shapedExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return x.temporality
}

func (x *shapedExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	if k == sdkmetric.InstrumentKindHistogram {
		return x.aggregation
	}
	return sdkmetric.DefaultAggregationSelector(k)
}

func (x *shapedExporter) Export(_ context.Context, m *metricdata.ResourceMetrics) error {
	x.got = make(map[string]metricdata.Aggregation)
	for _, s := range m.ScopeMetrics {
		for _, metric := range s.Metrics {
			x.got[metric.Name] = metric.Data
		}
	}
	return nil
}

func (*shapedExporter) ForceFlush(context.Context) error { return nil }
func (*shapedExporter) Shutdown(context.Context) error   { return nil }

// TestGapsInTheFormThatIsAskedFor: OTLP gets gaps as it gets every histogram;
// the page's buckets stay.
func TestGapsInTheFormThatIsAskedFor(t *testing.T) {
	for name, x := range map[string]*shapedExporter{
		"explicit": {aggregation: sdkmetric.AggregationDefault{}, temporality: metricdata.CumulativeTemporality},
		"delta":    {aggregation: sdkmetric.AggregationExplicitBucketHistogram{}, temporality: metricdata.DeltaTemporality},
		"exponential": {aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20},
			temporality: metricdata.CumulativeTemporality},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := readMetrics(environment{get: environ()}, nil, Config{}, x)
			if err != nil {
				t.Fatal(err)
			}
			i, err := newInstruments(parts.provider.Meter(scopeName), parts.gaps, Config{})
			if err != nil {
				t.Fatal(err)
			}
			tel := &Telemetry{instruments: i, labels: newLabels(nil, nil), endpoints: parts.endpoints, handler: parts.page}
			tel.measure(context.Background(), richRecord(), rulesOf(t, quiet()))
			tel.Overhead("request_body", time.Microsecond)
			tel.Overhead("request_body", 99*time.Millisecond)
			tel.Overhead("response_body", time.Second)
			page := scrape(t, tel, "")
			if err := parts.provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			const series = `inferspan_inter_token_latency_seconds_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",inferspan_pool="default",inferspan_token_count="exact",le="0.015"}`
			if got := sample(t, page, series); got != 3 {
				t.Errorf("the page has %v", got)
			}
			for series, want := range map[string]float64{
				`bucket{inferspan_phase="request_body",le="1e-06"}`: 1, `bucket{inferspan_phase="request_body",le="0.1"}`: 2,
				`count{inferspan_phase="response_body"}`: 1, `sum{inferspan_phase="request_body"}`: .099001,
				`bucket{inferspan_phase="response_body",le="0.1"}`: 0,
			} {
				if got := sample(t, page, "inferspan_processor_overhead_seconds_"+series); got != want {
					t.Errorf("%s is %v, want %v", series, got, want)
				}
			}
			for _, metric := range []string{mITL.Name, mGap.Name, mOverhead.Name} {
				switch data := x.got[metric].(type) {
				case metricdata.Histogram[float64]:
					if name == "exponential" || data.Temporality != x.temporality || len(data.DataPoints) == 0 {
						t.Errorf("%s: %+v", metric, data)
					}
				case metricdata.ExponentialHistogram[float64]:
					if name != "exponential" || len(data.DataPoints) == 0 {
						t.Errorf("%s: %+v", metric, data)
					}
				default:
					t.Errorf("%s is %T", metric, data)
				}
			}
		})
	}
}

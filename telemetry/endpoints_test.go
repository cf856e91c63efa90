package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestEndpointRows: what an exchange showed is credited to who served it, and
// what the router knows is shown as far as it is known.
func TestEndpointRows(t *testing.T) {
	c := quiet()
	endpoints := []Endpoint{
		{Pool: "default", Address: "10.0.0.1:8000", InFlight: 3, Queue: meter.Some(7.), KVUsage: meter.Some(.25), Healthy: true},
		{Pool: "canary", Address: "10.0.0.3:8000"},
	}
	c.Endpoints = func() []Endpoint { return endpoints }
	tel := open(t, c, nil)
	r := richRecord()
	play(tel, r)
	tel.ScrapeFailed("canary", "10.0.0.3:8000", "timeout")
	worked(tel)
	page := scrape(t, tel, "")
	const (
		first  = `{inferspan_endpoint="10.0.0.1:8000",inferspan_pool="default"}`
		canary = `{inferspan_endpoint="10.0.0.3:8000",inferspan_pool="canary"}`
	)
	for series, want := range map[string]float64{
		"inferspan_endpoint_inflight" + first:        3,
		"inferspan_endpoint_queue" + first:           7,
		"inferspan_endpoint_kv_usage_ratio" + first:  .25,
		"inferspan_endpoint_healthy" + first:         1,
		"inferspan_endpoint_inflight" + canary:       0,
		"inferspan_endpoint_healthy" + canary:        0,
		"inferspan_endpoint_queue" + canary:          -1,
		"inferspan_endpoint_kv_usage_ratio" + canary: -1,
		`inferspan_endpoint_requests_total{inferspan_endpoint="10.0.0.2:8001",inferspan_outcome="ok",inferspan_pool="default"}`:           1,
		`inferspan_endpoint_time_to_first_token_seconds_bucket{inferspan_endpoint="10.0.0.2:8001",inferspan_pool="default",le="0.05"}`:    0,
		`inferspan_endpoint_time_to_first_token_seconds_bucket{inferspan_endpoint="10.0.0.2:8001",inferspan_pool="default",le="0.1"}`:     1,
		`inferspan_endpoint_time_per_output_token_seconds_count{inferspan_endpoint="10.0.0.2:8001",inferspan_pool="default"}`:             2,
		`inferspan_endpoint_time_per_output_token_seconds_sum{inferspan_endpoint="10.0.0.2:8001",inferspan_pool="default"}`:               .05,
		`inferspan_endpoint_scrape_failures_total{inferspan_endpoint="10.0.0.3:8000",inferspan_pool="canary",inferspan_reason="timeout"}`: 1,
		`inferspan_endpoint_requests_total{inferspan_endpoint="10.0.0.1:8000"`:                                                            -1,
		`inferspan_endpoint_time_to_first_token_seconds_count{inferspan_endpoint="10.0.0.1:8000"`:                                         -1,
	} {
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	endpoints = endpoints[:1]
	if page := scrape(t, tel, ""); strings.Contains(page, "inferspan_endpoint_healthy"+canary) {
		t.Errorf("an endpoint that left has a state:\n%s", page)
	}
	if err := tel.closeMetrics(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndpointOfARecord: without a word of who served, the chosen one is
// credited; who was served by nobody is nobody's.
func TestEndpointOfARecord(t *testing.T) {
	s := newEndpointStore(nil)
	r := richRecord()
	r.Route.Served = ""
	s.end(r)
	r.Route.Endpoint = ""
	s.end(r)
	r.Outcome, r.Route.Endpoint = meter.ClientCancelled, "10.0.0.1:8000"
	s.end(r)
	points := collectEndpoints(t, s.producer(metricdata.CumulativeTemporality, ""))
	want := []string{
		"inferspan.endpoint.requests 10.0.0.1:8000 client_cancelled 1",
		"inferspan.endpoint.requests 10.0.0.1:8000 ok 1",
		"inferspan.endpoint.time_per_output_token 10.0.0.1:8000 2",
	}
	if !slices.Equal(points, want) {
		t.Errorf("points %q, want %q", points, want)
	}
}

// collectEndpoints returns the points of one collection: metric, endpoint, what
// else it carries, and value or count; sorted.
func collectEndpoints(t *testing.T, p *endpointProducer) []string {
	t.Helper()
	scopes, err := p.Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, scope := range scopes {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					address, _ := d.Attributes.Value(keyEndpoint)
					more, ok := d.Attributes.Value(keyOutcome)
					if !ok {
						more, _ = d.Attributes.Value(keyReason)
					}
					if d.StartTime.After(d.Time) || d.StartTime.IsZero() || !data.IsMonotonic {
						t.Errorf("%s is from %v to %v", m.Name, d.StartTime, d.Time)
					}
					out = append(out, fmt.Sprint(m.Name, " ", address.AsString(), " ", more.AsString(), " ", d.Value))
				}
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					address, _ := d.Attributes.Value(keyEndpoint)
					sum := uint64(0)
					for _, n := range d.BucketCounts {
						sum += n
					}
					if sum != d.Count || len(d.BucketCounts) != len(d.Bounds)+1 {
						t.Errorf("%s: %d samples, buckets %v by %v", m.Name, d.Count, d.BucketCounts, d.Bounds)
					}
					out = append(out, fmt.Sprint(m.Name, " ", address.AsString(), " ", d.Count))
				}
			default:
				t.Errorf("%s is %T", m.Name, data)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestEndpointSeriesEnd: a series ends some time after its endpoint left and
// nothing more came of it, and one of the same name that comes later begins
// anew.
func TestEndpointSeriesEnd(t *testing.T) {
	now := origin
	present := []Endpoint{{Pool: "p", Address: "a"}}
	s := newEndpointStore(func() []Endpoint { return present })
	s.now = func() time.Time { return now }
	cumulative := s.producer(metricdata.CumulativeTemporality, "")
	delta := s.producer(metricdata.DeltaTemporality, "")
	check := func(wantAll, wantNew string) {
		t.Helper()
		for name, p := range map[string]*endpointProducer{wantAll: cumulative, wantNew: delta} {
			got := strings.Join(collectEndpoints(t, p), ", ")
			if want, _, _ := strings.Cut(name, "#"); got != want {
				t.Errorf("delta %v: %q, want %q", p.delta, got, want)
			}
		}
	}
	fail := func(address string) {
		s.to("p", address, func(e *endpointTotals) { e.failures["timeout"]++ })
	}
	const of = "inferspan.endpoint.scrape.failures "
	fail("a")
	fail("gone")
	check(of+"a timeout 1, "+of+"gone timeout 1", of+"a timeout 1, "+of+"gone timeout 1#")
	now = now.Add(endpointLinger)
	fail("a")
	check(of+"a timeout 2, "+of+"gone timeout 1", of+"a timeout 1#")
	now = now.Add(time.Second)
	check(of+"a timeout 2", "")
	now = now.Add(24 * time.Hour)
	check(of+"a timeout 2", "") // it is there, and nothing comes of it
	present = nil
	now = now.Add(endpointLinger)
	check(of+"a timeout 2", "")
	fail("gone")
	now = now.Add(time.Second)
	check(of+"gone timeout 1", of+"gone timeout 1#")
	scopes, err := cumulative.Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, ok := scopes[0].Metrics[0].Data.(metricdata.Sum[int64])
	if !ok || !data.DataPoints[0].StartTime.Equal(now.Add(-time.Second)) {
		t.Errorf("a series that came back: %+v, want it to begin when it came", scopes[0].Metrics[0].Data)
	}
}

// TestEndpointDelta: what was collected is not collected again.
func TestEndpointDelta(t *testing.T) {
	s := newEndpointStore(nil)
	delta := s.producer(metricdata.DeltaTemporality, "")
	r := richRecord()
	l := meter.Labels{Pool: "default", Endpoint: "10.0.0.2:8001"}
	want := []string{
		"inferspan.endpoint.requests 10.0.0.2:8001 ok 1",
		"inferspan.endpoint.time_per_output_token 10.0.0.2:8001 2",
		"inferspan.endpoint.time_to_first_token 10.0.0.2:8001 1",
	}
	for range 3 {
		s.first(&l, time.Hour)
		s.end(r)
		if got := collectEndpoints(t, delta); !slices.Equal(got, want) {
			t.Errorf("points %q, want %q", got, want)
		}
		if got := collectEndpoints(t, delta); len(got) != 0 {
			t.Errorf("points %q of nothing", got)
		}
	}
}

// TestEndpointsAreBounded: what Envoy says served can be anything.
func TestEndpointsAreBounded(t *testing.T) {
	s := newEndpointStore(nil)
	folded := 0
	for i := range 2 * maxEndpoints {
		l := meter.Labels{Pool: "p", Endpoint: fmt.Sprintf("10.0.0.1:%d", i)}
		if s.first(&l, time.Second) {
			folded++
		}
	}
	if len(s.series) != maxEndpoints+1 || folded != maxEndpoints || s.series[endpointKey{"p", otherValue}].ttft.count != maxEndpoints {
		t.Errorf("%d series, %d folded, want %d and %d", len(s.series), folded, maxEndpoints+1, maxEndpoints)
	}
	l := meter.Labels{Pool: "p", Endpoint: "10.0.0.1:1"}
	if s.first(&l, time.Second) {
		t.Error("an endpoint that had a series lost it")
	}
}

// BenchmarkEndpointProduce is one collection of a large fleet.
func BenchmarkEndpointProduce(b *testing.B) {
	s := newEndpointStore(nil)
	r := richRecord()
	for i := range 1000 {
		r.Route.Served = fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250)
		s.end(r)
		l := meter.Labels{Pool: "default", Endpoint: r.Route.Served}
		s.first(&l, time.Second)
	}
	p := s.producer(metricdata.CumulativeTemporality, "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Produce(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEndpointEnd is what the end of an exchange costs.
func BenchmarkEndpointEnd(b *testing.B) {
	s, r := newEndpointStore(nil), richRecord()
	b.ReportAllocs()
	for b.Loop() {
		s.end(r)
	}
}

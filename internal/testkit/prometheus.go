package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"
)

// Prometheus is a running Prometheus that takes OTLP too.
type Prometheus struct {
	*Process
	Addr string
}

// StartPrometheus starts Prometheus at addr with a configuration and dir for
// its data, and returns when it is ready.
func StartPrometheus(ctx context.Context, addr, config, dir string) (*Prometheus, error) {
	bin, err := Tool("prometheus")
	if err != nil {
		return nil, err
	}
	p := &Prometheus{Addr: addr}
	p.Process, err = StartProcess("Prometheus", bin, []string{
		"--config.file=" + config, "--storage.tsdb.path=" + dir, "--web.listen-address=" + p.Addr,
		"--web.enable-otlp-receiver", "--enable-feature=exemplar-storage",
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx, "http://"+p.Addr+"/-/ready"); err != nil {
		return nil, err
	}
	return p, nil
}

// PrometheusOTLP returns the URL where a Prometheus at addr takes metrics.
func PrometheusOTLP(addr string) string { return "http://" + addr + "/api/v1/otlp/v1/metrics" }

// Series is one series that a query returned, with its samples.
type Series struct {
	Labels  map[string]string
	Samples []float64
}

// Query returns what an expression is now, one sample a series.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	return p.query(ctx, "/api/v1/query", url.Values{"query": {expr}})
}

// QueryRange returns what an expression was, each second of a time.
func (p *Prometheus) QueryRange(ctx context.Context, expr string, from, to time.Time) ([]Series, error) {
	unix := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	return p.query(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {unix(from)}, "end": {unix(to)}, "step": {"1s"},
	})
}

// Sum returns the sum over the series of an expression; 0 where it has none.
func (p *Prometheus) Sum(ctx context.Context, expr string) (float64, error) {
	series, err := p.Query(ctx, expr)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, s := range series {
		sum += s.Samples[0]
	}
	return sum, nil
}

func (p *Prometheus) query(ctx context.Context, path string, form url.Values) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  *sample
			Values []sample
		}
	}
	if err := p.api(ctx, path, form, &data); err != nil {
		return nil, err
	}
	all := make([]Series, len(data.Result))
	for i, r := range data.Result {
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		all[i].Labels = r.Metric
		for _, v := range r.Values {
			all[i].Samples = append(all[i].Samples, float64(v))
		}
	}
	return all, nil
}

// ExemplarTraces returns the trace ids of the exemplars that an expression's
// series have had since a time.
func (p *Prometheus) ExemplarTraces(ctx context.Context, expr string, since time.Time) ([]string, error) {
	var data []struct {
		Exemplars []struct {
			Labels struct {
				TraceID string `json:"trace_id"`
			}
		}
	}
	form := url.Values{
		"query": {expr},
		"start": {since.UTC().Format(time.RFC3339)},
		"end":   {time.Now().Add(time.Minute).UTC().Format(time.RFC3339)},
	}
	if err := p.api(ctx, "/api/v1/query_exemplars", form, &data); err != nil {
		return nil, err
	}
	var ids []string
	for _, series := range data {
		for _, e := range series.Exemplars {
			ids = append(ids, e.Labels.TraceID)
		}
	}
	return ids, nil
}

// api gets the data of a successful answer.
func (p *Prometheus) api(ctx context.Context, path string, form url.Values, data any) error {
	page, err := Get(ctx, "http://"+p.Addr+path+"?"+form.Encode())
	if err != nil {
		return fmt.Errorf("asking Prometheus for %s: %w", form.Get("query"), err)
	}
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.Unmarshal(page, &answer); err != nil {
		return fmt.Errorf("asking Prometheus for %s: %w in %.200s", form.Get("query"), err, page)
	}
	if answer.Status != "success" {
		return fmt.Errorf("asking Prometheus for %s: status %q: %.200s", form.Get("query"), answer.Status, page)
	}
	return nil
}

// sample is a value as Prometheus writes it: [time, "number"].
type sample float64

// UnmarshalJSON reads the number.
func (s *sample) UnmarshalJSON(b []byte) error {
	var at float64
	var number string
	if err := json.Unmarshal(b, &[2]any{&at, &number}); err != nil {
		return fmt.Errorf("reading a sample: %w", err)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return fmt.Errorf("reading a sample: %w", err)
	}
	*s = sample(v)
	return nil
}

// Real tells whether the series has a sample that is a number.
func (s Series) Real() bool {
	for _, v := range s.Samples {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return true
		}
	}
	return false
}

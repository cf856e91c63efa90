package scrape

import (
	"bufio"
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/inferspan/inferspan/processor/route"
)

var (
	quotedName = regexp.MustCompile(`[{,]\s*"`)
	compound   = regexp.MustCompile(`(?i)summary|histogram`)
)

// reference reads a page by Prometheus's own library.
func reference(text []byte) (route.Signals, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return route.Signals{}, err
	}
	find := func(name string) []*dto.Metric {
		var all []*dto.Metric
		for _, prefix := range []string{"vllm:", "vllm_"} {
			if f := families[prefix+name]; f != nil {
				all = append(all, f.GetMetric()...)
			}
		}
		return all
	}
	total := func(name string) (sum route.Opt[float64], n int) {
		all := find(name)
		for _, m := range all {
			sum.V += valueOf(m)
			if v := valueOf(m); math.IsNaN(v) || v < 0 || v > math.MaxInt32 {
				return route.Opt[float64]{}, len(all)
			}
		}
		sum.OK = len(all) > 0
		return sum, len(all)
	}
	either := func(name, other string) (route.Opt[float64], int) {
		if v, n := total(name); n > 0 {
			return v, n
		}
		return total(other)
	}
	var p route.Signals
	p.Running, _ = total("num_requests_running")
	p.Waiting, _ = either("num_requests_waiting", "num_requests_waiting_by_reason")
	if v, n := either("kv_cache_usage_perc", "gpu_cache_usage_perc"); v.OK && v.V/float64(n) <= 1 {
		p.KVUsage = route.Some(v.V / float64(n))
	}
	latest := math.Inf(-1)
	for _, m := range find("lora_requests_info") {
		if at := valueOf(m); at >= latest {
			latest = at
			p.MaxLoRA, p.RunningLoRA, p.WaitingLoRA = number(m, "max_lora"), nil, nil
			if p.MaxLoRA.OK {
				p.RunningLoRA, p.WaitingLoRA = names(labelOf(m, "running_lora_adapters")), names(labelOf(m, "waiting_lora_adapters"))
			}
		}
	}
	for _, m := range find("cache_config_info") {
		if n := number(m, "block_size"); n.OK {
			p.BlockSize = n
		}
		if n := number(m, "num_gpu_blocks"); n.OK {
			p.Blocks = route.Some(p.Blocks.V + n.V)
		}
	}
	if p.Blocks.V > math.MaxInt32 {
		p.Blocks = route.Opt[int]{}
	}
	return p, nil
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	}
	return m.GetUntyped().GetValue()
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func number(m *dto.Metric, label string) route.Opt[int] {
	n, err := strconv.ParseInt(labelOf(m, label), 10, 32)
	if err != nil || n <= 0 {
		return route.Opt[int]{}
	}
	return route.Some(int(n))
}

func names(label string) []string {
	var out []string
	for name := range strings.SplitSeq(label, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// FuzzRead: what the library can read, Read reads to the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte("vllm:num_requests_running 3\n"))
	f.Add([]byte("vllm:num_requests_running 1e308\nvllm:num_requests_waiting 2147483648\n"))
	f.Add([]byte("vllm:num_requests_running{engine=\"0\"} NaN 123\nvllm_num_requests_running{} 1e3\n"))
	f.Add([]byte("vllm:num_requests_waiting_by_reason { reason = \"a\\\\\\\"\\n}\" , } -0\n vllm:kv_cache_usage_perc\t{a=\"b\"}\t+Inf\n"))
	f.Add([]byte("vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a, b\\\"\",waiting_lora_adapters=\",\"} 1.5e9\nvllm:lora_requests_info{max_lora=\"-1\"} -1\n"))
	f.Add([]byte("vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"2147483647\"} 1\nvllm:cache_config_info{block_size=\"032\",num_gpu_blocks=\"+1\",x=\"y\"} 0\n"))
	f.Add([]byte("# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc 0.5\n# TYPE vllm:x histogram\nvllm:x_bucket{le=\"1\"} 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Read(bufio.NewReaderSize(bytes.NewReader(text), len(text)+1))
		if err != nil {
			t.Fatal(err)
		}
		// Names in quotes are of another form, which we don't ask for; a summary's
		// or histogram's number is not where a gauge has it, and ours are gauges.
		if quotedName.Match(text) || compound.Match(text) {
			return
		}
		want, err := reference(text)
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q\n-library +ours:\n%s", text, diff)
		}
	})
}

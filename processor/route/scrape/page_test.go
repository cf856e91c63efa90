package scrape

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/processor/route"
)

func readPage(t testing.TB, text string) route.Signals {
	t.Helper()
	p, err := Read(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRead(t *testing.T) {
	f := func(text string, want route.Signals) {
		t.Helper()
		if diff := cmp.Diff(want, readPage(t, text)); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", text, diff)
		}
	}
	// What is not there is unknown.
	f("", route.Signals{})
	f("# HELP up Is it.\nup 1\n<html>\n{\"error\":\"Not Found\"}\n", route.Signals{})
	f("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n", route.Signals{Running: route.Some[float64](3)})
	f("vllm:num_requests_running 0.0\n", route.Signals{Running: route.Some[float64](0)})
	// Every engine counts, and a server of several frontends has no label engine.
	f(`vllm:num_requests_running{engine="0"} 3.0
vllm:num_requests_running{engine="1"} 1.0
vllm:num_requests_waiting{engine="0"} 7.0
vllm:num_requests_waiting{engine="1"} 0.0
vllm:kv_cache_usage_perc{engine="0"} 0.75
vllm:kv_cache_usage_perc{engine="1"} 0.25
`, route.Signals{Running: route.Some[float64](4), Waiting: route.Some[float64](7), KVUsage: route.Some[float64](.5)})
	// A sum with an unknown part is unknown; the rest of the page is not.
	f("vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} NaN\nvllm:num_requests_waiting 2\n", route.Signals{Waiting: route.Some[float64](2)})
	f("vllm:num_requests_waiting{engine=\"1\"} NaN\nvllm:num_requests_waiting{engine=\"0\"} 3\n", route.Signals{})
	f("vllm:num_requests_running +Inf\nvllm:num_requests_waiting -1\nvllm:kv_cache_usage_perc 45\n", route.Signals{})
	f("vllm:num_requests_running 1e308\nvllm:num_requests_waiting 2147483647\n", route.Signals{Waiting: route.Some[float64](math.MaxInt32)})
	f("vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} what\n", route.Signals{})
	f("vllm:num_requests_running{engine=\"0\" 3\nvllm:num_requests_waiting\nvllm:kv_cache_usage_perc{a=b} 1\n", route.Signals{})
	// By its old name, where the new one is not there too.
	f("vllm:gpu_cache_usage_perc 0.25\n", route.Signals{KVUsage: route.Some[float64](.25)})
	f("vllm:gpu_cache_usage_perc 0.25\nvllm:kv_cache_usage_perc 0.5\n", route.Signals{KVUsage: route.Some[float64](.5)})
	f("vllm:gpu_cache_usage_perc 0.25\nvllm:kv_cache_usage_perc NaN\n", route.Signals{})
	f("vllm:cpu_cache_usage_perc 0.25\nvllm:num_requests_swapped 3\n", route.Signals{})
	// The waiting by reason are the waiting once more.
	f(`vllm:num_requests_waiting_by_reason{reason="capacity"} 4
vllm:num_requests_waiting_by_reason{reason="deferred"} 1
`, route.Signals{Waiting: route.Some[float64](5)})
	f(`vllm:num_requests_waiting_by_reason{reason="capacity"} 4
vllm:num_requests_waiting_by_reason{reason="deferred"} 1
vllm:num_requests_waiting 5
`, route.Signals{Waiting: route.Some[float64](5)})
	// Names without a colon, and names that only begin like ours.
	f("vllm_num_requests_running 3\nvllm_kv_cache_usage_perc 1\nvllmxnum_requests_waiting 2\n", route.Signals{Running: route.Some[float64](3), KVUsage: route.Some[float64](1)})
	f("vllm:num_requests_running_total 3\nxvllm:num_requests_running 2\nvllm:num_requests_runnin 1\nvllm\nvllm:\n", route.Signals{})
	// The text form's freedoms.
	f(" \tvllm:num_requests_running\t{ engine = \"0\" , model_name=\"a}\\\"\\\\ \\n b\", } \t 3e0 1760000000000\r\n", route.Signals{Running: route.Some[float64](3)})
	f("vllm:num_requests_running{} 3 # {trace_id=\"x\"} 1\n# EOF\n", route.Signals{Running: route.Some[float64](3)})
	f("vllm:num_requests_running 3", route.Signals{Running: route.Some[float64](3)})
	f("vllm:num_requests_running 0x1p-2\nvllm:num_requests_waiting 1_0\n", route.Signals{})
}

func TestRead_LoRA(t *testing.T) {
	f := func(text string, want route.Signals) {
		t.Helper()
		if diff := cmp.Diff(want, readPage(t, text)); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", text, diff)
		}
	}
	// The latest counts, wherever it stands.
	f(`vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.76e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql,fr",waiting_lora_adapters="de"} 1.7600000123e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql",waiting_lora_adapters=""} 1.760000012e+09
`, route.Signals{MaxLoRA: route.Some(4), RunningLoRA: []string{"sql", "fr"}, WaitingLoRA: []string{"de"}})
	f(`vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 2
vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql",waiting_lora_adapters=""} NaN
vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql",waiting_lora_adapters=""} when
`, route.Signals{MaxLoRA: route.Some(4)})
	f(`vllm_lora_requests_info{running_lora_adapters="a\"b, c ,,",max_lora="1"} 0`, route.Signals{MaxLoRA: route.Some(1), RunningLoRA: []string{`a"b`, "c"}})
	// How many there can be is what says that there are any.
	f(`vllm:lora_requests_info{running_lora_adapters="a",max_lora="many"} 0`, route.Signals{})
}

func TestRead_Cache(t *testing.T) {
	f := func(text string, want route.Signals) {
		t.Helper()
		if diff := cmp.Diff(want, readPage(t, text)); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", text, diff)
		}
	}
	f(`vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="2048",num_cpu_blocks="None"} 1.0`,
		route.Signals{BlockSize: route.Some(16), Blocks: route.Some(2048)})
	f("vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"2048\"} 1.0\nvllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"2000\"} 1.0\n",
		route.Signals{BlockSize: route.Some(16), Blocks: route.Some(4048)})
	f(`vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0`, route.Signals{BlockSize: route.Some(16)})
	f(`vllm:cache_config_info{block_size="-16",num_gpu_blocks="99999999999"} 1.0`, route.Signals{})
	f(`vllm:cache_config_info{block_size="16",num_gpu_blocks="2048" 1.0`, route.Signals{})
}

// A line longer than the buffer is passed over, wherever it ends.
func TestRead_LongLines(t *testing.T) {
	const size = 64
	for n := range 3 * size {
		text := "vllm:num_requests_waiting{x=\"" + strings.Repeat("y", n) + "\"} 1\nvllm:num_requests_running 2\n"
		p, err := Read(bufio.NewReaderSize(strings.NewReader(text), size))
		if err != nil {
			t.Fatal(err)
		}
		want := route.Signals{Running: route.Some[float64](2)}
		if strings.IndexByte(text, '\n') < size {
			want.Waiting = route.Some[float64](1)
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("a line of %d bytes: -want +got:\n%s", strings.IndexByte(text, '\n'), diff)
		}
	}
}

func TestRead_Failure(t *testing.T) {
	broken := errors.New("broken")
	p, err := Read(bufio.NewReader(io.MultiReader(strings.NewReader("vllm:num_requests_running 3\nvllm:"), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) || !cmp.Equal(p, route.Signals{}) {
		t.Errorf("got %+v and the error %v, want nothing and %v", p, err, broken)
	}
}

// realPage is what vLLM 0.32.0 showed while it had six requests, with a tiny
// model on a CPU.
func realPage(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("testdata/vllm-0.32.0.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func TestRead_RealPage(t *testing.T) {
	text := realPage(t)
	want := route.Signals{
		Running: route.Some(6.), Waiting: route.Some(0.), KVUsage: route.Some(0.00036623329060614385),
		BlockSize: route.Some(128), Blocks: route.Some(16384),
	}
	if diff := cmp.Diff(want, readPage(t, text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	byLibrary, err := reference([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byLibrary, want); diff != "" {
		t.Errorf("-library +want:\n%s", diff)
	}
}

func TestRead_WholePage(t *testing.T) {
	for _, engines := range []int{1, 8} {
		p := readPage(t, wholePage(engines))
		n := float64(engines)
		want := route.Signals{
			Running: route.Some[float64](3 * n), Waiting: route.Some[float64](5 * n), KVUsage: route.Some[float64](.5),
			MaxLoRA: route.Some(4), RunningLoRA: []string{"sql"}, WaitingLoRA: []string{"fr", "de"},
			BlockSize: route.Some(16), Blocks: route.Some(2048 * engines),
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("%d engines: -want +got:\n%s", engines, diff)
		}
	}
}

// wholePage has the names of every generation, of some engines and with
// adapters, among as much else as a real page has.
func wholePage(engines int) string {
	var b strings.Builder
	head := func(name, kind string) {
		fmt.Fprintf(&b, "# HELP %s What it is, in some words as they are usual.\n# TYPE %s %s\n", name, name, kind)
	}
	head("python_gc_objects_collected_total", "counter")
	for i := range 3 {
		fmt.Fprintf(&b, "python_gc_objects_collected_total{generation=\"%d\"} %d.0\n", i, 1000*i)
	}
	labels := func(engine int) string {
		return fmt.Sprintf("engine=\"%d\",model_name=\"meta-llama/Llama-3.1-8B\"", engine)
	}
	gauge := func(name, more string, value float64) {
		for e := range engines {
			fmt.Fprintf(&b, "vllm:%s{%s%s} %g\n", name, labels(e), more, value)
		}
	}
	for name, value := range map[string]float64{"num_requests_running": 3, "num_requests_waiting": 5, "kv_cache_usage_perc": .5, "gpu_cache_usage_perc": .125} {
		head("vllm:"+name, "gauge")
		gauge(name, "", value)
	}
	head("vllm:num_requests_waiting_by_reason", "gauge")
	gauge("num_requests_waiting_by_reason", `,reason="capacity"`, 4)
	gauge("num_requests_waiting_by_reason", `,reason="deferred"`, 1)
	for _, name := range []string{"prefix_cache_queries", "prefix_cache_hits", "num_preemptions", "prompt_tokens", "generation_tokens", "prompt_tokens_cached"} {
		head("vllm:"+name+"_total", "counter")
		gauge(name+"_total", "", 1234567)
		gauge(name+"_created", "", 1.7600000001234567e+09)
	}
	for i := range 18 {
		name := fmt.Sprintf("vllm:histogram_%d_of_the_page_seconds", i)
		head(name, "histogram")
		for e := range engines {
			for bucket := range 21 {
				fmt.Fprintf(&b, "%s_bucket{%s,le=\"%g\"} %d.0\n", name, labels(e), float64(bucket)/8, 1000*bucket)
			}
			fmt.Fprintf(&b, "%s_count{%s} 21000.0\n%s_sum{%s} 123.456\n", name, labels(e), name, labels(e))
		}
	}
	head("vllm:cache_config_info", "gauge")
	for e := range engines {
		fmt.Fprintf(&b, "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"%d\",gpu_memory_utilization=\"0.9\",num_cpu_blocks=\"None\",num_gpu_blocks=\"2048\",sliding_window=\"None\",swap_space_bytes=\"4294967296\"} 1.0\n", e)
	}
	head("vllm:lora_requests_info", "gauge")
	b.WriteString("vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"sql\",waiting_lora_adapters=\"fr,de\"} 1.7600000123e+09\n" +
		"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"} 1.7600000001e+09\n")
	return b.String()
}

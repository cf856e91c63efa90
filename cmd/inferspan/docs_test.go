package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/telemetry"
)

var pages = []string{"../../SECURITY.md", "../../docs/operations.md"}

func readPage(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The pages for operators name only metrics, attributes, settings and tests that are
// there.
func TestPages_Names(t *testing.T) {
	var metrics, exposed []string
	for _, m := range telemetry.Metrics() {
		metrics = append(metrics, m.Name)
		exposed = append(exposed, strings.ReplaceAll(m.Name, ".", "_"))
	}
	for _, a := range telemetry.SpanAttributes() {
		metrics = append(metrics, a.Name)
	}
	configuration := readPage(t, "../../docs/configuration.md")
	found := 0
	for _, file := range pages {
		page := readPage(t, file)
		for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(page, -1) {
			name := strings.Trim(code, "`")
			switch {
			case regexp.MustCompile(`^(gen_ai|inferspan)\.[a-z_.]+$`).MatchString(name):
				if !slices.Contains(metrics, name) {
					t.Errorf("%s: there is no metric or attribute %s", file, name)
				}
			case regexp.MustCompile(`^(tls|admin_tls|trace|request|exchange|journal|ext_proc|usage|log)\.[a-z_.]+$`).MatchString(name):
				if !strings.Contains(configuration, "| `"+name+"` |") {
					t.Errorf("%s: there is no key %s", file, name)
				}
			default:
				continue
			}
			found++
		}
		for _, series := range regexp.MustCompile(`\binferspan_[a-z_]+\b`).FindAllString(page, -1) {
			if !slices.Contains(exposed, strings.TrimSuffix(series, "_total")) && series != "inferspan_reason" && series != "inferspan_test" { // the alerts' file of tests
				t.Errorf("%s: there is no series %s", file, series)
			}
		}
	}
	if found < 25 {
		t.Errorf("%d names found, want 25 or more", found)
	}
}

// What the pages say measures something is there.
func TestPages_Benchmarks(t *testing.T) {
	places := map[string]string{
		"BenchmarkResponseFrame": "../../processor/bench_test.go", "BenchmarkRequest": "../../processor/bench_test.go",
		"BenchmarkChatChunk": "../../processor/meter/cost_test.go", "TestMemoryOfAStream": "../../processor/meter/cost_test.go",
		"BenchmarkGzipChunk": "../../processor/meter/compressed_test.go",
		"BenchmarkEnd":       "../../telemetry/bench_test.go", "BenchmarkSpan": "../../telemetry/bench_test.go",
		"BenchmarkBegin": "../../telemetry/bench_test.go", "BenchmarkFirstToken": "../../telemetry/bench_test.go",
		"BenchmarkOverhead": "../../telemetry/bench_test.go", "BenchmarkMeasure": "../../telemetry/bench_test.go",
		"BenchmarkPipeline": "../../telemetry/pipeline_bench_test.go", "BenchmarkLastFrame": "../../processor/last_bench_test.go",
		"TestNothingPerChunk": "../../processor/chunks_test.go", "TestMemoryOfALargePrompt": "../../processor/rewrite_test.go",
		"TestHoldTotal": "../../processor/hold_test.go",
		"BenchmarkAdd":  "../../journal/journal_test.go",
		"BenchmarkAsk":  "../../processor/route/scrape/http_test.go", "BenchmarkRead": "../../processor/route/scrape/bench_test.go",
	}
	for _, file := range pages {
		for _, name := range regexp.MustCompile("`(Benchmark|Test)[A-Za-z_]+`").FindAllString(readPage(t, file), -1) {
			name = strings.Trim(name, "`")
			if places[name] == "" || !strings.Contains(readPage(t, places[name]), "func "+name+"(") {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
	}
}

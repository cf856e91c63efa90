package telemetry

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// TestRecordings: what metrics say of real exchanges, each by itself, is what was
// sent: tokens to the one, and where all of them are known the mean of the inter
// token latency is the time per output token.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("../internal/testkit/testdata/streams/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for _, file := range files {
		rec, err := recording.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording.Replay(rec, recording.Cut{})
		tel := open(t, quiet(), nil)
		tel.End(r)
		worked(tel)
		page := scrape(t, tel, "")
		shut(t, tel)
		labels := fmt.Sprintf(`gen_ai_operation_name=%q,gen_ai_provider_name="vllm"`, r.Operation())
		if model, _ := newLabels([]string{"llama"}, nil).models.get(r.RequestModel.V, success(r.Status)); model != "" {
			labels += fmt.Sprintf(`,gen_ai_request_model=%q`, model)
		}
		want := -1.
		if r.OutputTokens.OK {
			want = float64(r.OutputTokens.V)
		}
		if got := sample(t, page, fmt.Sprintf(`inferspan_output_tokens_total{%s,inferspan_usage_source=%q}`, labels, r.OutputSource)); got != want {
			t.Errorf("%s: %v tokens, want %v", r.Name, got, want)
		}
		if len(r.TPOT) != 1 || r.TPOT[0].Assumed || r.Class() != meter.ClassDone || len(r.ITL.Assumed) > 0 && r.ITL.Assumed[0].Count > 0 {
			continue
		}
		exact++
		mean := func(metric string) float64 {
			series := metric + `_seconds_%s{` + labels + `,inferspan_token_count="exact"}`
			return sample(t, page, fmt.Sprintf(series, "sum")) / sample(t, page, fmt.Sprintf(series, "count"))
		}
		itl, tpot := mean("inferspan_inter_token_latency"), mean("gen_ai_server_time_per_output_token")
		if !(math.Abs(itl-tpot) <= 1e-6) {
			t.Errorf("%s: the mean inter token latency is %v, the time per output token %v", r.Name, itl, tpot)
		}
	}
	if exact < 5 {
		t.Errorf("%d of %d recordings have tokens that are all known, want 5 or more", exact, len(files))
	}
}

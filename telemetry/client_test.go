package telemetry

import (
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// clientPage is the page after records, with the client metrics in a form.
func clientPage(t *testing.T, form string, records ...*meter.Record) string {
	t.Helper()
	c := quiet()
	c.ClientMetrics = form
	tel := open(t, c, nil)
	for _, r := range records {
		tel.End(r)
	}
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	return page
}

// TestClientMetrics: those of the form, under the names that it gives, and no
// others; none by default.
func TestClientMetrics(t *testing.T) {
	for _, form := range []string{"", clientOff, clientGenAI, client141} {
		page := clientPage(t, form, richRecord())
		var want, got []string
		for _, m := range clientCatalogue() {
			if m.Client == form {
				want = append(want, pageName(m))
			}
		}
		for line := range strings.Lines(page) {
			if name, ok := strings.CutPrefix(line, "# TYPE gen_ai_client_"); ok {
				name, _, _ = strings.Cut(name, " ")
				got = append(got, "gen_ai_client_"+name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", form, got, want)
		}
	}
}

// pageName is what m is called on the page.
func pageName(m Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch {
	case m.Unit == secondsUnit:
		return name + "_seconds"
	case m.Kind == Counter:
		return name + "_total"
	}
	return name
}

// TestClientTokens: as the server reported them, 0 of the modality unknown where
// it did not, and nothing that we counted ourselves.
func TestClientTokens(t *testing.T) {
	completion := richRecord()
	completion.Dialect, completion.Path = dialect.Completions, "/v1/completions"
	silent := richRecord()
	silent.PromptTokens, silent.CachedTokens, silent.ReasoningTokens = meter.Opt[int64]{}, meter.Opt[int64]{}, meter.Opt[int64]{}
	silent.OutputSource = meter.SourceTokenIDs
	other := richRecord()
	other.Path = "/v1/embeddings"
	page := clientPage(t, clientGenAI, richRecord(), completion, silent, other)

	const chat = `gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama",`
	text := strings.Replace(chat, "chat", "text_completion", 1)
	for series, want := range map[string]float64{
		`input_tokens_total{` + chat + `gen_ai_token_modality="unknown"`:            11,
		`input_tokens_total{` + text + `gen_ai_token_modality="text"`:               11,
		`output_tokens_total{` + chat + `gen_ai_token_modality="text"`:              9,
		`output_tokens_total{` + chat + `gen_ai_token_modality="unknown"`:           0,
		`cache_read_input_tokens_total{` + text + `gen_ai_token_modality="text"`:    4,
		`cache_read_input_tokens_total{` + chat + `gen_ai_token_modality="unknown"`: 4,
		`reasoning_output_tokens_total{` + chat + `gen_ai_token_modality="text"`:    2,
		`reasoning_output_tokens_total{` + chat + `gen_ai_token_modality="unknown"`: 0,
		`input_tokens_total{` + strings.Replace(chat, "chat", "embeddings", 1) + ``: -1,
	} {
		series = "gen_ai_client_inference_usage_" + series + `,inferspan_pool="default"}`
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for series, want := range map[string]float64{
		`inference_operation_output_tokens_count{` + chat: 1, `inference_operation_output_tokens_sum{` + text: 9,
		`inference_duration_seconds_count{` + chat: 2, `inference_time_to_first_chunk_seconds_count{` + chat: 2,
		`inference_time_per_output_chunk_seconds_count{` + chat: 4, `inference_time_per_output_chunk_seconds_sum{` + text: .045,
	} {
		series = "gen_ai_client_" + series + `inferspan_pool="default"}`
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}

	page = clientPage(t, client141, richRecord(), silent)
	for kind, want := range map[string]float64{"input": 11, "output": 9} {
		series := `gen_ai_client_token_usage_sum{` + chat + `gen_ai_token_type="` + kind + `",inferspan_pool="default"}`
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}

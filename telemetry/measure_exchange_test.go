package telemetry

import (
	"fmt"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

const commonLabels = `gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="llama"`

// pageOf is the page after r.
func pageOf(t *testing.T, r *meter.Record) string {
	t.Helper()
	tel := open(t, quiet(), nil)
	play(tel, r)
	worked(tel)
	defer shut(t, tel)
	return scrape(t, tel, "")
}

func TestChoicesByFinishReason(t *testing.T) {
	stop, none := meter.Some("stop"), meter.Opt[string]{}
	for _, c := range []struct {
		outcome meter.Outcome
		finish  []meter.Opt[string]
		want    map[string]float64
	}{
		{meter.OK, []meter.Opt[string]{stop, meter.Some("length"), stop}, map[string]float64{"stop": 2, "length": 1}},
		{meter.OKNoFinish, []meter.Opt[string]{none}, map[string]float64{"none": 1}},
		{meter.Aborted, []meter.Opt[string]{stop, none}, map[string]float64{"stop": 1, "error": 1}},
	} {
		r := richRecord()
		r.Outcome, r.Finish = c.outcome, c.finish
		page := pageOf(t, r)
		for reason, want := range c.want {
			series := fmt.Sprintf(`inferspan_choices_total{%s,gen_ai_response_finish_reason=%q,inferspan_pool="default"}`, commonLabels, reason)
			if got := sample(t, page, series); got != want {
				t.Errorf("%s: %v of %s, want %v", c.outcome, got, reason, want)
			}
		}
	}
}

// TestFinishReasonsAreBounded: a server may say anything.
func TestFinishReasonsAreBounded(t *testing.T) {
	tel := open(t, quiet(), nil)
	r := richRecord()
	r.Finish = nil
	for i := range 3 * maxFinishReasons {
		r.Finish = append(r.Finish, meter.Some(fmt.Sprint("reason ", i)))
	}
	play(tel, r)
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	series := fmt.Sprintf(`inferspan_choices_total{%s,gen_ai_response_finish_reason=%q,inferspan_pool="default"}`, commonLabels, otherValue)
	if got := sample(t, page, series); got != 2*maxFinishReasons {
		t.Errorf("%v are folded, want %d", got, 2*maxFinishReasons)
	}
}

func TestEngineAndStallsAndAttempts(t *testing.T) {
	r := richRecord()
	r.Stalls = 3
	page := pageOf(t, r)
	labels := "{" + commonLabels + `,inferspan_pool="default"}`
	for series, want := range map[string]float64{
		"inferspan_stream_stalls_total" + labels:                                                                               3,
		"inferspan_engine_queue_duration_seconds_sum" + labels:                                                                 .005,
		"inferspan_engine_prefill_duration_seconds_sum" + labels:                                                               .03,
		"inferspan_engine_decode_duration_seconds_count" + labels:                                                              1,
		"inferspan_upstream_attempts_total{" + commonLabels + `,inferspan_pool="default",inferspan_route_reason="least_load"}`: 2,
		"inferspan_route_decisions_total{" + commonLabels + `,inferspan_pool="default",inferspan_route_reason="least_load"}`:   1,
	} {
		if got := sample(t, page, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}

// TestDecisionWithoutARecord: a stream that only decides counts its decision.
func TestDecisionWithoutARecord(t *testing.T) {
	tel := open(t, quiet(), nil)
	tel.Routed(meter.Route{Reason: "no_model", Duration: ms}, meter.Labels{Operation: "chat", Model: "nobody has it"})
	page := scrape(t, tel, "")
	shut(t, tel)
	const series = `inferspan_route_duration_seconds_sum{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="_OTHER",inferspan_route_reason="no_model"}`
	if got := sample(t, page, series); got != .001 {
		t.Errorf("%v s, want 0.001", got)
	}
}

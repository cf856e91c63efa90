package grafana

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/inferspan/inferspan/processor/meter"
)

// The metrics, by their Prometheus names.
const (
	metricDuration    = "gen_ai_server_request_duration_seconds"
	metricTTFT        = "gen_ai_server_time_to_first_token_seconds"
	metricTPOT        = "gen_ai_server_time_per_output_token_seconds"
	metricITL         = "inferspan_inter_token_latency_seconds"
	metricFirstByte   = "inferspan_time_to_first_byte_seconds"
	metricFirstEvent  = "inferspan_time_to_first_event_seconds"
	metricFirstAnswer = "inferspan_time_to_first_answer_token_seconds"
	metricNoToken     = "inferspan_no_first_token_seconds"
	metricRequests    = "inferspan_requests_total"
	metricActive      = "inferspan_request_active"
	metricStreams     = "inferspan_stream_active"
	metricOutput      = "inferspan_output_tokens_total"
	metricInput       = "inferspan_input_tokens_total"
	metricCached      = "inferspan_cached_input_tokens_total"
	metricWasted      = "inferspan_wasted_tokens_total"
	metricOverhead    = "inferspan_processor_overhead_seconds"
	metricFaults      = "inferspan_processor_faults_total"
	metricQueued      = "inferspan_telemetry_queued_total"
	metricSent        = "inferspan_telemetry_sent_total"
	metricDropped     = "inferspan_telemetry_dropped_total"
	metricBuildInfo   = "inferspan_build_info"

	metricEndpointInFlight = "inferspan_endpoint_inflight"
	metricEndpointQueue    = "inferspan_endpoint_queue"
	metricEndpointKVUsage  = "inferspan_endpoint_kv_usage_ratio"
	metricEndpointHealthy  = "inferspan_endpoint_healthy"
	metricEndpointTTFT     = "inferspan_endpoint_time_to_first_token_seconds"
	metricEndpointTPOT     = "inferspan_endpoint_time_per_output_token_seconds"
	metricEndpointRequests = "inferspan_endpoint_requests_total"
	metricScrapeFailures   = "inferspan_endpoint_scrape_failures_total"
)

// The labels that queries group by or match.
const (
	labelModel   = "gen_ai_request_model"
	labelPool    = "inferspan_pool"
	labelOutcome = "inferspan_outcome"
	labelStatus  = "http_response_status_code"
	labelSource  = "inferspan_usage_source"
	labelStage   = "inferspan_stage"
	labelReason  = "inferspan_reason"
	labelPhase   = "inferspan_phase"

	labelEndpoint = "inferspan_endpoint"
)

// chosen selects what the dashboard's variables choose; ours also where a
// metric has neither model nor pool.
const (
	ours   = `job=~"$job", instance=~"$instance"`
	chosen = ours + `, gen_ai_request_model=~"$model", inferspan_pool=~"$pool"`
)

// rate is the growth per second of each series of a counter.
func rate(metric string, matchers ...string) string {
	return fmt.Sprintf("rate(%s{%s}[$__rate_interval])", metric, strings.Join(matchers, ", "))
}

// sum adds up an expression, by labels where some are given.
func sum(expr string, by ...string) string {
	if len(by) == 0 {
		return fmt.Sprintf("sum(%s)", expr)
	}
	return fmt.Sprintf("sum by (%s) (%s)", strings.Join(by, ", "), expr)
}

// most and least are the largest and the smallest of an expression, by a label.
func most(expr, by string) string  { return fmt.Sprintf("max by (%s) (%s)", by, expr) }
func least(expr, by string) string { return fmt.Sprintf("min by (%s) (%s)", by, expr) }

// quantile is a quantile of a histogram, by labels where some are given.
func quantile(q float64, metric, selector string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%g, %s)", q, sum(rate(metric+"_bucket", selector), append([]string{"le"}, by...)...))
}

// orZero is expr, and 0 where it has no series and all has: a counter that never
// counted has none. Both have the same labels.
func orZero(expr, all string) string { return fmt.Sprintf("%s or 0 * %s", expr, all) }

// orNone is expr, and where it has no series at all, a single 0 under the name
// "none" where all has one: what could be read is told from what is not there.
func orNone(expr, label, all string) string {
	return fmt.Sprintf(`%s or on () label_replace(0 * %s, "%s", "none", "", "")`, expr, all, label)
}

// ratio is the share of part in all, nothing (NaN) where all is 0.
func ratio(part, all string) string { return fmt.Sprintf("(%s) / %s", orZero(part, all), all) }

// failedStatus matches the statuses of an http_error of the class failed.
const failedStatus = "5..|429"

// failed is the rate of the requests of the class failed.
func failed(by ...string) string {
	return sum(
		rate(metricRequests, chosen, outcomeIs(outcomes(meter.ClassFailed)...))+
			" or "+
			rate(metricRequests, chosen, fmt.Sprintf(`%s="%s"`, labelOutcome, meter.HTTPError), fmt.Sprintf(`%s=~"%s"`, labelStatus, failedStatus)),
		by...)
}

// outcomeIs matches some outcomes.
func outcomeIs(names ...string) string {
	return fmt.Sprintf(`%s=~"%s"`, labelOutcome, strings.Join(names, "|"))
}

// outcomes are those of some classes. That of http_error depends on its status;
// here it is refused.
func outcomes(classes ...meter.Class) []string {
	var names []string
	for _, o := range []meter.Outcome{
		meter.Rejected, meter.HTTPError, meter.ErrorInStream, meter.OK, meter.OKNoFinish,
		meter.ClientCancelledAfterFinish, meter.ClientCancelled, meter.UpstreamReset, meter.Timeout,
		meter.Lost, meter.Aborted, meter.Empty, meter.Truncated, meter.Unparsed,
	} {
		if slices.Contains(classes, o.Class(http.StatusBadRequest)) {
			names = append(names, string(o))
		}
	}
	return names
}

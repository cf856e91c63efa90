package grafana

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/inferspan/inferspan/processor/meter"
)

// overview is the dashboard: from "is it fast" at the top to "is it us" below.
func overview() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder("Inferspan").
		Uid("inferspan").
		Description("Requests to the model servers, as the gateway saw them: how many, how fast, how many tokens, and how they ended.").
		Tags([]string{"inferspan", "inference", "vllm"}).
		Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Refresh("30s").
		Time("now-1h", "now").
		Variables(variables())
	for _, row := range []struct {
		title  string
		panels []cog.Builder[dashboard.Panel]
	}{
		{"Now", now()},
		{"Traffic", traffic()},
		{"Latency", latency()},
		{"Tokens", tokens()},
		{"Endpoints", endpoints()},
		{"Inferspan itself", itself()},
	} {
		b = b.WithRow(dashboard.NewRowBuilder(row.title))
		for _, p := range row.panels {
			b = b.WithPanel(p)
		}
	}
	return b
}

func now() []cog.Builder[dashboard.Panel] {
	requests := sum(rate(metricRequests, chosen))
	return []cog.Builder[dashboard.Panel]{
		tile("Requests", "Requests that ended, per second, whatever their outcome.",
			unitRequests, requests),
		tile("Failed", "Share of the requests that failed: 5xx, 429, an error inside the stream, a reset, a time-out, or a stream that broke off. Clients that hung up and other 4xx are not among them. Look at Requests by outcome for which.",
			unitShare, ratio(failed(), requests), .01, .05),
		tile("Time to first token, p95", "95 of 100 requests had their first token sooner. High: look at Where the first token waits.",
			unitSeconds, quantile(.95, metricTTFT, chosen)),
		tile("Between tokens, p95", "95 of 100 gaps between two tokens of a stream were shorter. High: the model servers' batches are too large, or prefills interrupt decoding.",
			unitSeconds, quantile(.95, metricITL, chosen)),
		tile("Output tokens", "Generated tokens per second, counted when their request ended: long streams show late.",
			unitTokens, sum(rate(metricOutput, chosen))),
		tile("Active", "Requests that have not ended. Rising while Requests is flat: the model servers don't keep up.",
			unitCount, sum(metricActive+"{"+chosen+"}")),
	}
}

func traffic() []cog.Builder[dashboard.Panel] {
	byOutcome := stacked(graph("Requests by outcome",
		"How requests ended. Green: done. Yellow: the client hung up, or nobody says who did. Red: failed. Blue: refused or rejected, and 5xx. Purple: we can't tell.",
		unitRequests, "No traffic", half,
		query{expr: sum(rate(metricRequests, chosen), labelOutcome), legend: "{{" + labelOutcome + "}}"}))
	byOutcome = colored(byOutcome, "green", outcomes(meter.ClassDone)...)
	byOutcome = colored(byOutcome, "yellow", outcomes(meter.ClassCancelled)...)
	byOutcome = colored(byOutcome, "red", outcomes(meter.ClassFailed)...)
	byOutcome = colored(byOutcome, "blue", outcomes(meter.ClassRefused, meter.ClassRejected)...)
	byOutcome = colored(byOutcome, "purple", outcomes(meter.ClassUnknown)...)
	return []cog.Builder[dashboard.Panel]{
		byOutcome,
		stacked(graph("Requests by model", "Requests that ended, by the model that the client asked for. "+
			"_OTHER stands for models that no configuration names.",
			unitRequests, "No traffic", half,
			query{expr: sum(rate(metricRequests, chosen), labelModel), legend: "{{" + labelModel + "}}"})),
		graph("Failed by model", "Share of each model's requests that failed. One model alone: its servers. All at once: the gateway or the network.",
			unitShare, "No traffic", third,
			query{expr: ratio(failed(labelModel), sum(rate(metricRequests, chosen), labelModel)), legend: "{{" + labelModel + "}}"}),
		graph("HTTP errors by status", "Responses with a status of 400 or more. 429 and 503: the servers, or we, shed load. 404: a model that nobody serves.",
			unitRequests, "No traffic", third,
			query{expr: orNone(sum(rate(metricRequests, chosen, labelStatus+`=~"[45].."`), labelStatus), labelStatus, sum(rate(metricRequests, chosen))), legend: "{{" + labelStatus + "}}"}),
		graph("Active", "Requests that have not ended, and those of them that are streaming. Far apart: requests wait for their first byte.",
			unitCount, "No traffic", third,
			query{expr: sum(metricActive + "{" + chosen + "}"), legend: "requests"},
			query{expr: sum(metricStreams + "{" + chosen + "}"), legend: "streaming"}),
	}
}

func latency() []cog.Builder[dashboard.Panel] {
	waits := graph("Where the first token waits, p95",
		"First byte high: queue, prefill or network. First token far above first event: the server holds back output (tool and reasoning parsers, stop strings). First answer far above first token: the model thinks first.",
		unitSeconds, "No streams", half,
		query{expr: quantile(.95, metricFirstByte, chosen), legend: "first byte"},
		query{expr: quantile(.95, metricFirstEvent, chosen), legend: "first event"},
		query{expr: quantile(.95, metricTTFT, chosen), legend: "first token"},
		query{expr: quantile(.95, metricFirstAnswer, chosen), legend: "first answer token"})
	return []cog.Builder[dashboard.Panel]{
		percentiles("Time to first token", "From the request to the first token of any kind, reasoning included. Points are single requests: each leads to its trace.", metricTTFT),
		percentiles("Between tokens", "Gap between two tokens of one choice (inter-token latency), every gap counted. Its p99 shows stalls that the mean per request hides.", metricITL),
		percentiles("Time per output token", "Mean gap of each request, requests that were done only: how fast the text comes, by request.", metricTPOT),
		percentiles("Duration", "From the request to its end, whatever its outcome. Long answers are long: compare with Time to first token.", metricDuration),
		graph("Time to first token by model, p95", "One model alone: its servers are busy or its prompts are long.",
			unitSeconds, "No streams", third,
			query{expr: quantile(.95, metricTTFT, chosen, labelModel), legend: "{{" + labelModel + "}}"}),
		graph("Between tokens by model, p95", "One model alone: its servers' batches are too large.",
			unitSeconds, "No streams", third,
			query{expr: quantile(.95, metricITL, chosen, labelModel), legend: "{{" + labelModel + "}}"}),
		waits,
		stacked(graph("No first token", "Streams that ended without a token, by why. Cancelled and aborted: clients gave up waiting. Hidden: tokens were generated and none was shown.",
			unitPerSec, "No traffic", half,
			query{
				expr:   orNone(sum(rate(metricNoToken+"_count", chosen), labelReason), labelReason, sum(rate(metricRequests, chosen))),
				legend: "{{" + labelReason + "}}",
			})),
	}
}

func tokens() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		stacked(graph("Output tokens by model", "Generated tokens per second, counted when their request ended.",
			unitTokens, "No traffic", third,
			query{expr: sum(rate(metricOutput, chosen), labelModel), legend: "{{" + labelModel + "}}"})),
		graph("Input tokens", "Tokens of prompts, and those of them that the server had in its cache. Cached falling: prompts of one conversation go to different servers.",
			unitTokens, "The servers reported no prompt tokens", third,
			query{expr: sum(rate(metricInput, chosen)), legend: "input"},
			query{expr: orZero(sum(rate(metricCached, chosen)), sum(rate(metricInput, chosen))), legend: "of them cached"}),
		stacked(graph("Output tokens by source", "Where the number of tokens comes from. estimate: the server gave no exact number (the client hung up before the usage came, or did not ask for it).",
			unitTokens, "No traffic", third,
			query{expr: sum(rate(metricOutput, chosen), labelSource), legend: "{{" + labelSource + "}}"})),
		stacked(graph("Wasted tokens", "Tokens computed for requests that failed or were cancelled, by outcome and stage: work that nobody got.",
			unitTokens, "No traffic", half,
			query{
				expr:   orNone(sum(rate(metricWasted, chosen), labelOutcome, labelStage), labelOutcome, sum(rate(metricRequests, chosen))),
				legend: "{{" + labelOutcome + "}} {{" + labelStage + "}}",
			})),
		graph("Output tokens per request", "Tokens generated by requests that ended, divided by their number. A jump changes durations and load at the same number of requests.",
			unitCount, "No traffic", half,
			query{expr: sum(rate(metricOutput, chosen), labelModel) + " / " + sum(rate(metricRequests, chosen), labelModel), legend: "{{" + labelModel + "}}"}),
	}
}

func itself() []cog.Builder[dashboard.Panel] {
	spans := sum(rate(metricQueued, ours))
	return []cog.Builder[dashboard.Panel]{
		graph("Overhead by phase, p99", "Time that one message of Envoy took us, from having it to having answered it. Above a millisecond: this process lacks CPU. All models and pools.",
			unitSeconds, "No traffic", third,
			query{expr: quantile(.99, metricOverhead, ours, labelPhase), legend: "{{" + labelPhase + "}}"}),
		graph("Spans", "Spans per second: queued for export, accepted by the collector, dropped. Dropped above 0: the collector is down or too slow; traffic is not affected.",
			unitPerSec, "No spans: is an OTLP endpoint set?", third,
			query{expr: spans, legend: "queued"},
			query{expr: orZero(sum(rate(metricSent, ours)), spans), legend: "sent"},
			query{expr: orNone(sum(rate(metricDropped, ours), labelReason), labelReason, spans), legend: "dropped {{" + labelReason + "}}"}),
		graph("Faults", "What went wrong inside and was contained; traffic went on. Above 0: report it, with the log.",
			unitPerSec, "No traffic", third,
			query{expr: orNone(sum(rate(metricFaults, ours), labelReason), labelReason, sum(rate(metricRequests, ours))), legend: "{{" + labelReason + "}}"}),
	}
}

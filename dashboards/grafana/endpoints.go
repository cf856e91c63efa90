package grafana

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/inferspan/inferspan/processor/meter"
)

// mostEndpoints is how many endpoints a panel shows: a graph of a thousand lines
// shows nothing.
const mostEndpoints = 15

// endpoints is about single model servers. What a server says of itself each
// Inferspan has asked it, so that the largest is taken and not the sum.
func endpoints() []cog.Builder[dashboard.Panel] {
	const inPools = ours + `, inferspan_pool=~"$pool"`
	const name = "{{" + labelEndpoint + "}}"
	of := func(metric string) string { return metric + "{" + inPools + "}" }
	healthy := least(of(metricEndpointHealthy), labelEndpoint)
	requests := sum(rate(metricEndpointRequests, inPools), labelEndpoint)
	failures := sum(rate(metricEndpointRequests, inPools, outcomeIs(append(outcomes(meter.ClassFailed), string(meter.HTTPError))...)), labelEndpoint)
	return []cog.Builder[dashboard.Panel]{
		graph("Endpoints", "Model servers of the pools, and those of them that can be chosen: neither unhealthy nor ejected by any Inferspan. Fewer: the log's lines \"an endpoint is unhealthy\" say why.",
			unitCount, "No endpoints", third,
			query{expr: "count(" + healthy + ")", legend: "all"},
			query{expr: "sum(" + healthy + ")", legend: "can be chosen"}),
		graph("In flight by endpoint", "Requests that have not ended, the busiest servers. One far above the others: it is slow, or alone in serving its model.",
			unitCount, "No endpoints", third,
			query{expr: top(sum(of(metricEndpointInFlight), labelEndpoint)), legend: name}),
		graph("Requests by endpoint", "Requests that ended, by the server that answered, the busiest servers.",
			unitRequests, "No traffic", third,
			query{expr: top(requests), legend: name}),
		graph("Queue by endpoint", "Requests that wait in the server's own queue, whoever sent them, the longest queues. Above 0 for long: the pool is too small.",
			unitCount, "No server tells", third,
			query{expr: top(most(of(metricEndpointQueue), labelEndpoint)), legend: name}),
		graph("KV cache by endpoint", "Share of the server's KV cache that is in use, the fullest. Near 1: requests wait for memory, or lose theirs and start again.",
			unitShare, "No server tells", third,
			query{expr: top(most(of(metricEndpointKVUsage), labelEndpoint)), legend: name}),
		graph("Failed by endpoint", "Share of the server's requests that failed or got an error status, refusals (4xx) too, the worst servers. One alone: that server. All: look at Failed by model.",
			unitShare, "No traffic", third,
			query{expr: top(ratio(failures, requests)), legend: name}),
		graph("Time to first token by endpoint, p95", "All models together, the slowest servers. One alone, with the queue of the others: its machine.",
			unitSeconds, "No streams", third,
			query{expr: top(quantile(.95, metricEndpointTTFT, inPools, labelEndpoint)), legend: name}),
		graph("Time per output token by endpoint, p95", "All models together, the slowest servers.",
			unitSeconds, "No streams", third,
			query{expr: top(quantile(.95, metricEndpointTPOT, inPools, labelEndpoint)), legend: name}),
		graph("Metrics that can't be read", "Pages of servers' metrics that could not be read, by why. Without them a server's load is known by our own requests only.",
			unitPerSec, "No traffic", third,
			query{expr: orNone(sum(rate(metricScrapeFailures, inPools), labelReason), labelReason, sum(rate(metricRequests, chosen))), legend: "{{" + labelReason + "}}"}),
	}
}

// top is the largest series of an expression.
func top(expr string) string { return fmt.Sprintf("topk(%d, %s)", mostEndpoints, expr) }

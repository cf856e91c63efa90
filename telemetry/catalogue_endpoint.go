package telemetry

// The buckets of an endpoint's histograms are few: a fleet has many endpoints.
var (
	bucketsEndpointTTFT = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	bucketsEndpointTPOT = []float64{.005, .01, .02, .03, .05, .075, .1, .2, .5}
)

// endpointAttributes are what every metric of an endpoint carries.
var endpointAttributes = []string{string(keyPool), string(keyEndpoint)}

// The metrics of endpoints. A series ends endpointLinger after its endpoint left.
var (
	mEndpointInFlight = Metric{Name: "inferspan.endpoint.inflight", Kind: ObservableUpDown, Unit: requestUnit,
		Description: "Exchanges at an endpoint of the pools that have not ended, as this process counts them.",
		Attributes:  endpointAttributes}
	mEndpointQueue = Metric{Name: "inferspan.endpoint.queue", Kind: Gauge, Unit: requestUnit,
		Description: "Requests that wait in the endpoint's queue, by its own account, whoever sent them; absent where that is not known or too old.",
		Attributes:  endpointAttributes}
	mEndpointKVUsage = Metric{Name: "inferspan.endpoint.kv_usage", Kind: Gauge, Unit: "1",
		Description: "The part of the endpoint's KV cache that is in use, by its own account, the mean over its engines; absent where that is not known or too old.",
		Attributes:  endpointAttributes}
	mEndpointHealthy = Metric{Name: "inferspan.endpoint.healthy", Kind: Gauge,
		Description: "1 while the endpoint can be chosen; 0 while it is unhealthy or ejected.",
		Attributes:  endpointAttributes}
	mEndpointTTFT = Metric{Name: "inferspan.endpoint.time_to_first_token", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsEndpointTTFT,
		Description: "Time to the first token of exchanges that the endpoint served, all models together.",
		Attributes:  endpointAttributes}
	mEndpointTPOT = Metric{Name: "inferspan.endpoint.time_per_output_token", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsEndpointTPOT,
		Description: "Time per output token after the first, one sample a choice, of exchanges that the endpoint served and that were done.",
		Attributes:  endpointAttributes}
	mEndpointRequests = Metric{Name: "inferspan.endpoint.requests", Kind: Counter, Unit: requestUnit,
		Description: "Exchanges that ended, by the endpoint that served them, or the chosen one where Envoy does not say who did. The series of an endpoint end 10 min after it left the pools and nothing more came of it.",
		Attributes:  append(endpointAttributes[:2:2], string(keyOutcome))}
	mEndpointScrapeFailures = Metric{Name: "inferspan.endpoint.scrape.failures", Kind: Counter, Unit: "{scrape}",
		Description: "Times that the endpoint's page of metrics could not be read: unreachable, there was no connection; timeout; status, it was not 200; broken, the page broke off or was too large.",
		Attributes:  append(endpointAttributes[:2:2], string(keyReason))}
)

func endpointMetrics() []Metric {
	return []Metric{
		mEndpointInFlight, mEndpointQueue, mEndpointKVUsage, mEndpointHealthy,
		mEndpointTTFT, mEndpointTPOT, mEndpointRequests, mEndpointScrapeFailures,
	}
}

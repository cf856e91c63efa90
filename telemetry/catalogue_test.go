package telemetry

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestConventionNames pins the names of GenAI conventions 0.1.0, that no update
// of a library may change.
func TestConventionNames(t *testing.T) {
	for got, want := range map[string]string{
		string(keyOperation):        "gen_ai.operation.name",
		string(keyProvider):         "gen_ai.provider.name",
		string(keyRequestModel):     "gen_ai.request.model",
		string(keyRequestStream):    "gen_ai.request.stream",
		string(keyRequestMaxTokens): "gen_ai.request.max_tokens",
		string(keyRequestChoices):   "gen_ai.request.choice.count",
		string(keyResponseModel):    "gen_ai.response.model",
		string(keyResponseID):       "gen_ai.response.id",
		string(keyFinishReasons):    "gen_ai.response.finish_reasons",
		string(keyTimeToFirstChunk): "gen_ai.response.time_to_first_chunk",
		string(keyUsageInput):       "gen_ai.usage.input_tokens",
		string(keyUsageOutput):      "gen_ai.usage.output_tokens",
		string(keyUsageCacheRead):   "gen_ai.usage.cache_read.input_tokens",
		string(keyUsageReasoning):   "gen_ai.usage.reasoning.output_tokens",
		string(keyServerAddress):    "server.address",
		string(keyServerPort):       "server.port",
		string(keyErrorType):        "error.type",
		string(keyHTTPStatus):       "http.response.status_code",
		string(keyTokenModality):    "gen_ai.token.modality",
		string(keyTokenType):        "gen_ai.token.type",
		metricServerDuration:        "gen_ai.server.request.duration",
		metricServerTTFT:            "gen_ai.server.time_to_first_token",
		metricServerTPOT:            "gen_ai.server.time_per_output_token",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCatalogueIsSound(t *testing.T) {
	known := make(map[string]bool)
	for _, a := range slices.Concat(SpanAttributes(), OtherAttributes()) {
		if known[a.Name] {
			t.Errorf("the attribute %s stands twice", a.Name)
		}
		known[a.Name] = true
	}
	metrics, carried := make(map[string]bool), make(map[string]bool)
	for _, a := range commonAttributes() {
		carried[a] = true
	}
	for _, m := range Metrics() {
		if metrics[m.Name] || m.Description == "" {
			t.Errorf("the metric %s stands twice, or says nothing", m.Name)
		}
		metrics[m.Name] = true
		if (m.Kind == Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s: buckets %v", m.Name, m.Buckets)
		}
		for _, a := range m.Attributes {
			carried[a] = true
			if !known[a] {
				t.Errorf("%s carries %s, which is not in the catalogue", m.Name, a)
			}
		}
	}
	for a := range carried {
		if Bounds()[a] == "" {
			t.Errorf("nothing bounds the values of %s, which metrics carry", a)
		}
	}
	for a := range Bounds() {
		if !carried[a] {
			t.Errorf("%s has a bound, and no metric carries it", a)
		}
	}
	for _, e := range Events() {
		for _, a := range e.Attributes {
			if !known[a] {
				t.Errorf("%s carries %s, which is not in the catalogue", e.Name, a)
			}
		}
	}
	if len(Events()) != len(markEvents) {
		t.Errorf("%d events, %d kinds of marks", len(Events()), len(markEvents))
	}
	for k, name := range markEvents {
		if Events()[k].Name != name {
			t.Errorf("mark %d is %s, the catalogue has %s", k, name, Events()[k].Name)
		}
		if meter.MarkKind(k) != meter.MarkChunk && !slices.Contains(milestones, meter.MarkKind(k)) {
			t.Errorf("%s has no rank among the milestones", name)
		}
	}
}

func TestGapBoundsAreTheBuckets(t *testing.T) {
	bounds := GapBounds()
	if len(bounds) != len(bucketsGap) {
		t.Fatalf("%d bounds, %d buckets", len(bounds), len(bucketsGap))
	}
	for i, b := range bounds {
		if b.Seconds() != bucketsGap[i] {
			t.Errorf("bound %d is %v, want %v s", i, b, bucketsGap[i])
		}
	}
}

// TestDocumentIsCurrent: docs/telemetry.md is made from the catalogue.
func TestDocumentIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "telemetry.md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, path, document())
}

const documentHead = `<!-- Made from telemetry/catalogue.go by go test ./telemetry -update. Do not edit. -->

# What is exported

One span for each exchange, and metrics of all exchanges. What each number means is said in [definitions.md](definitions.md).

Where it goes is told by the ` + "`OTEL_*`" + ` variables alone; with no endpoint among them, nothing is exported and nothing is tried.
Spans and metrics go over OTLP (` + "`grpc`" + `, or by ` + "`OTEL_EXPORTER_OTLP_PROTOCOL`" + `), and metrics are on ` + "`/metrics`" + ` too, with exemplars where OpenMetrics is asked for.
Differing from the SDK's defaults: metrics go every 15 s (` + "`OTEL_METRIC_EXPORT_INTERVAL`" + `), spans wait at most 1 s for their batch (` + "`OTEL_BSP_SCHEDULE_DELAY`" + `),
and the queue of spans is bounded by 32 MiB of memory; ` + "`OTEL_BSP_MAX_QUEUE_SIZE`" + `, if set, bounds their number too. While the collector is away, spans wait there; those for which there is no room
are dropped and counted. Metrics miss nothing of an outage, as their sums go on (not with delta temporality, which loses what a failed export held).

Neither prompts nor completions are ever among it, nor headers, but those that ` + "`attributes.from_headers`" + ` names. What a client can choose freely is cut at 128 bytes, and becomes the value of a metric's attribute
only where it is bounded: a model that is not configured is named once a server has accepted it, up to 200 of them, and ` + "`" + otherValue + "`" + ` before and beyond.

What Inferspan says of its own telemetry is under ` + "`inferspan.telemetry.`" + `, the access log's entries and unseen exchanges too: each of them counts what a number elsewhere lacks.

On ` + "`/metrics`" + `, dots in names are underscores, and units and ` + "`_total`" + ` are appended: ` + "`gen_ai_server_time_to_first_token_seconds_bucket`" + `.
`

func document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("\n## The span\n\nNamed `{operation} {request model}`, kind client. What is absent was not known: absent is never zero.\n" +
		"Where we decided where the exchange goes, a child span `route` carries the pool's, the endpoint's and the route's attributes. With `trace.engine_spans: on` the child spans `queue`, `prefill` and `decode` are the server's phases, by its own account.\n\n" +
		"| attribute | type | meaning |\n| --- | --- | --- |\n")
	writeAttributes(&b, SpanAttributes())
	fmt.Fprintf(&b, "\n## Events\n\nThey go onto the span, or as log records that name it (`trace.events`). Of the chunks, at most %d have an event where the exchange failed, stalled, was slow or forced, else %d, evenly spread over the stream.\n\n"+
		"| event | attributes | meaning |\n| --- | --- | --- |\n", defaultChunkMax, ordinaryChunks)
	for _, e := range Events() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Name, quoted(e.Attributes), e.Description)
	}
	fmt.Fprintf(&b, "\n## Metrics\n\nCommon attributes: %s. Headers: what `attributes.from_headers` has on metrics. Of: the GenAI conventions by release, where a metric is theirs. Stability of all: %s, until version 1.0.0.\n\n| metric | kind | unit | attributes | of | meaning |\n| --- | --- | --- | --- | --- | --- |\n", quoted(commonAttributes()), Stability)
	for _, m := range Metrics() {
		attributes := quoted(m.Attributes)
		if m.Common {
			attributes = strings.TrimSuffix("common, "+attributes, ", ")
		}
		if m.Headers {
			attributes += ", headers"
		}
		if m.Client != "" {
			attributes += "; with `metrics.client: " + m.Client + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", m.Name, m.Kind, m.Unit, attributes, m.Convention(), m.Description)
	}
	b.WriteString("\n## Attributes of events and metrics\n\n| attribute | type | meaning |\n| --- | --- | --- |\n")
	writeAttributes(&b, OtherAttributes())
	b.WriteString("\n## How many series\n\nWhat bounds the values of each attribute that metrics carry. Beyond its bounds the SDK has one of its own for each metric (`otel.metric.overflow`).\n\n| attribute | values |\n| --- | --- |\n")
	bounds := Bounds()
	for _, a := range slices.Sorted(maps.Keys(bounds)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", a, bounds[a])
	}
	b.WriteString("\n## Buckets\n\nThe thresholds of SLOs come among those of their histograms.\n\n")
	for _, m := range Metrics() {
		if m.Kind == Histogram {
			fmt.Fprintf(&b, "- `%s`: %s\n", m.Name, strings.Trim(fmt.Sprint(m.Buckets), "[]"))
		}
	}
	return b.String()
}

func commonAttributes() []string {
	return []string{string(keyOperation), string(keyProvider), string(keyRequestModel), string(keyPool)}
}

func writeAttributes(b *strings.Builder, attributes []Attribute) {
	for _, a := range attributes {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", a.Name, a.Type, a.Description)
	}
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = "`" + n + "`"
	}
	return strings.Join(all, ", ")
}

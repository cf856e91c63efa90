package telemetry

// The forms of the GenAI conventions' client metrics: that of their release 0.1,
// and that of the semantic conventions 1.41, the last that held them.
const (
	clientOff   = "off"
	clientGenAI = "genai-0.1"
	client141   = "1.41"
)

// bucketsTokens are the conventions'.
var bucketsTokens = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

// The conventions' client metrics. A chunk is generated text of any kind. Their
// buckets are ours, which begin below the conventions' 10 ms.
var (
	mClientDuration = Metric{Name: "gen_ai.client.inference.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsDuration, Client: clientGenAI,
		Description: "Time from the request's start to its end.",
		Common:      true, Attributes: []string{string(keyErrorType)}}
	mClientFirstChunk = Metric{Name: "gen_ai.client.inference.time_to_first_chunk", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT, Client: clientGenAI,
		Description: "Time to the first token of a stream.", Common: true}
	mClientPerChunk = Metric{Name: "gen_ai.client.inference.time_per_output_chunk", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsGap, Client: clientGenAI,
		Description: "Time between two chunks of a stream.", Common: true}
	mClientInput = Metric{Name: "gen_ai.client.inference.usage.input_tokens", Kind: Counter, Unit: tokenUnit, Client: clientGenAI,
		Description: "Tokens of prompts, as the server reported them; 0 of the modality unknown where it did not.",
		Common:      true, Attributes: []string{string(keyTokenModality)}}
	mClientOutput = Metric{Name: "gen_ai.client.inference.usage.output_tokens", Kind: Counter, Unit: tokenUnit, Client: clientGenAI,
		Description: "Generated tokens, as the server reported them; 0 of the modality unknown where it did not.",
		Common:      true, Attributes: []string{string(keyTokenModality)}}
	mClientCached = Metric{Name: "gen_ai.client.inference.usage.cache_read.input_tokens", Kind: Counter, Unit: tokenUnit, Client: clientGenAI,
		Description: "Tokens of prompts that came from the server's cache, by its report; 0 of the modality unknown where it has none.",
		Common:      true, Attributes: []string{string(keyTokenModality)}}
	mClientReasoning = Metric{Name: "gen_ai.client.inference.usage.reasoning.output_tokens", Kind: Counter, Unit: tokenUnit, Client: clientGenAI,
		Description: "Generated tokens that were reasoning, by the server's report; 0 of the modality unknown where it has none.",
		Common:      true, Attributes: []string{string(keyTokenModality)}}
	mClientInputSize = Metric{Name: "gen_ai.client.inference.operation.input_tokens", Kind: Histogram, Unit: tokenUnit, Buckets: bucketsTokens, Client: clientGenAI,
		Description: "Tokens of one prompt, as the server reported them.", Common: true}
	mClientOutputSize = Metric{Name: "gen_ai.client.inference.operation.output_tokens", Kind: Histogram, Unit: tokenUnit, Buckets: bucketsTokens, Client: clientGenAI,
		Description: "Generated tokens of one exchange, as the server reported them.", Common: true}

	mClient141Duration = Metric{Name: "gen_ai.client.operation.duration", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsDuration, Client: client141,
		Description: "Time from the request's start to its end.",
		Common:      true, Attributes: []string{string(keyErrorType)}}
	mClient141FirstChunk = Metric{Name: "gen_ai.client.operation.time_to_first_chunk", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsTTFT, Client: client141,
		Description: "Time to the first token of a stream.", Common: true}
	mClient141PerChunk = Metric{Name: "gen_ai.client.operation.time_per_output_chunk", Kind: Histogram, Unit: secondsUnit, Buckets: bucketsGap, Client: client141,
		Description: "Time between two chunks of a stream.", Common: true}
	mClient141Tokens = Metric{Name: "gen_ai.client.token.usage", Kind: Histogram, Unit: tokenUnit, Buckets: bucketsTokens, Client: client141,
		Description: "Tokens of one prompt, and generated tokens of one exchange, as the server reported them.",
		Common:      true, Attributes: []string{string(keyTokenType)}}
)

// clientCatalogue are the client metrics of all forms.
func clientCatalogue() []Metric {
	return []Metric{
		mClientDuration, mClientFirstChunk, mClientPerChunk, mClientInput, mClientOutput, mClientCached, mClientReasoning,
		mClientInputSize, mClientOutputSize,
		mClient141Duration, mClient141FirstChunk, mClient141PerChunk, mClient141Tokens,
	}
}

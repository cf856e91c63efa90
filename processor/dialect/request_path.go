package dialect

import (
	"net/url"
	"strings"
)

// paths has the dialect of each path that one serves.
var paths = map[string]Dialect{
	"/v1/chat/completions":     Chat,
	"/v1/completions":          Completions,
	"/v1/responses":            Responses,
	"/v1/messages":             Messages,
	"/v1/audio/transcriptions": Transcription,
	"/v1/audio/translations":   Transcription,
	generatePath:               Generate,
	"/v1/embeddings":           Pooling,
	"/pooling":                 Pooling,
	"/score":                   Pooling,
	"/v1/score":                Pooling,
	"/rerank":                  Pooling,
	"/v1/rerank":               Pooling,
	"/v2/rerank":               Pooling,
	"/classify":                Pooling,
}

// ForPath returns the dialect that a request path is of; see [Endpoint].
func ForPath(path string) Dialect { return paths[Endpoint(path)] }

// Endpoint returns a request path as a model server knows it. A query string is
// dropped, and any prefix before the version, because Envoy rewrites prefixes
// after its filters: we see the path that the client sent. What is escaped counts
// for what it stands for: vLLM takes %2F for a slash, and Envoy leaves it. A path
// without a version keeps its prefix, since its last word could mean anything. A
// trailing slash is another path, as it is to vLLM.
func Endpoint(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	if strings.HasSuffix(path, generatePath) {
		return generatePath
	}
	if i := max(strings.LastIndex(path, "/v1/"), strings.LastIndex(path, "/v2/")); i >= 0 {
		return path[i:]
	}
	return path
}

const generatePath = "/inference/v1/generate"

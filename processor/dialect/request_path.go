package dialect

import "strings"

// ForPath returns the dialect that a request path is of; a query string is
// dropped. Any prefix before /v1 is allowed, because Envoy rewrites prefixes
// after its filters: we see the path that the client sent. A trailing slash is
// another path, as it is to vLLM.
func ForPath(path string) Dialect {
	path, _, _ = strings.Cut(path, "?")
	switch {
	case strings.HasSuffix(path, "/v1/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/v1/completions"):
		return Completions
	}
	return Unknown
}

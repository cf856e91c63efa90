package processor

import (
	"slices"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// A milestone is credited to who serves, as Envoy tells it, else to who was
// chosen.
func TestFirstIsCredited(t *testing.T) {
	f := func(told map[string]any, want string) {
		t.Helper()
		b := newBench(t)
		e := b.inline(buffered, streamed)
		send := func(m ...*extproc.ProcessingRequest) {
			for _, m := range m {
				e.send(m)
				e.recv()
			}
		}
		send(requestHeaders(false, chatHead()...), requestBody(`{"model":"alias","stream":true}`, true),
			attributes(responseHeaders(false, streamHead...), told), responseBody(token, false), responseBody(finished, true))
		e.closeSend()
		b.one()
		if got := slices.Compact(b.telemetry.servers); !slices.Equal(got, []string{want}) {
			t.Errorf("Envoy tells %v: credited are %q, want %q", told, got, want)
		}
	}
	f(map[string]any{}, testEndpoint)
	f(map[string]any{"upstream.address": "10.0.0.9:8000"}, "10.0.0.9:8000")
}

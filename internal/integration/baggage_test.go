//go:build integration

package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// The baggage of a client goes with its trace context: on to the model server where
// that is continued, and no further than here where it is not.
func TestBaggage(t *testing.T) {
	const parent, baggage = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant=acme,user=alice"
	for _, form := range deciding {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			for _, context := range []string{"parent", "link", "ignore"} {
				e := newEdge(t, form)
				e.startInferspan(e.config("default") + "trace: {client_context: " + context + "}\n")
				e.startEnvoy()
				call := chatCall()
				call.Header = append(call.Header,
					testkit.Header{Name: "traceparent", Value: parent}, testkit.Header{Name: "baggage", Value: baggage})
				x := e.mustPlay(t, chatScript("baggage", nil), call)
				up := e.upstream(t, x.id).Header
				want := map[bool]string{true: baggage}[context == "parent"]
				if got := up.Get("baggage"); x.Status != http.StatusOK || got != want {
					t.Errorf("%s: status %d, the server got the baggage %q, want %q", context, x.Status, got, want)
				}
				same := strings.HasPrefix(up.Get("traceparent"), parent[:35])
				if same != (context == "parent") {
					t.Errorf("%s: the server got the trace context %s", context, up.Get("traceparent"))
				}
			}
		})
	}
}

package processor

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// A server is blamed for what it did, and not for what clients, limits and Envoy
// alone did.
func TestFailure(t *testing.T) {
	f := func(o meter.Outcome, status int, details string, want route.Failure) {
		t.Helper()
		if got := failure(&meter.Record{Outcome: o, Status: status}, details); got != want {
			t.Errorf("%s with %d, %q: got %d, want %d", o, status, details, got, want)
		}
	}
	f(meter.OK, 200, "via_upstream", route.NoFailure)
	f(meter.ClientCancelled, 200, "via_upstream", route.NoFailure)
	f(meter.Aborted, 0, "", route.NoFailure)
	f(meter.ErrorInStream, 200, "via_upstream", route.NoFailure)
	f(meter.UpstreamReset, 200, "via_upstream", route.FailedReset)
	f(meter.Timeout, 0, "", route.FailedTimeout)
	f(meter.HTTPError, 400, "via_upstream", route.NoFailure)
	f(meter.HTTPError, 429, "via_upstream", route.NoFailure)
	f(meter.HTTPError, 501, "via_upstream", route.NoFailure)
	f(meter.HTTPError, 500, "via_upstream", route.FailedStatus)
	f(meter.HTTPError, 503, "", route.FailedStatus)
	f(meter.HTTPError, 503, "upstream_reset_before_response_started{remote_connection_failure|111}", route.FailedConnect)
	f(meter.HTTPError, 503, "upstream_reset_before_response_started{overflow}", route.NoFailure)
	f(meter.HTTPError, 503, "no_healthy_upstream", route.NoFailure)
	f(meter.HTTPError, 504, "response_timeout", route.FailedTimeout)
	f(meter.HTTPError, 504, "upstream_per_try_timeout", route.FailedTimeout)

	r := meter.Record{Outcome: meter.Timeout, FirstByte: meter.Some(time.Second)}
	if got := failure(&r, "via_upstream"); got != route.NoFailure {
		t.Errorf("a timeout of an answer under way: got %d, want none", got)
	}
}

// The router learns at the end of an exchange what it showed, and at its first
// token that the prompt was read.
func TestRouterLearns(t *testing.T) {
	var passed atomic.Int64
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return epoch.Add(time.Duration(passed.Load())) } })
	b.router.decideBy = func(q route.Request) route.Decision {
		d := toEndpoint(q)
		d.Tokens = 100
		return d
	}
	e := b.inline(buffered, streamed)
	e.send(requestHeaders(false, chatHead()...))
	e.recv()
	e.send(requestBody(`{"model":"m","stream":true,"messages":[]}`, true))
	e.recv()
	passed.Store(int64(30 * time.Millisecond))
	e.send(attributes(responseHeaders(false, streamHead...), map[string]any{
		"upstream.address": testEndpoint, "upstream.request_attempt_count": 2,
	}))
	e.recv()
	passed.Store(int64(50 * time.Millisecond))
	e.send(responseBody(token, false))
	e.recv()
	// A frame is read after its reply, and before the next one's.
	e.send(responseBody(": keep-alive\n\n", false))
	e.recv()
	if got, _ := b.router.learned(); got != 100 {
		t.Errorf("after the first token: %d tokens were read, want 100", got)
	}
	e.send(responseBody(finished+"data: [DONE]\n\n", true))
	e.recv()
	e.closeSend()
	b.one()
	_, got := b.router.learned()
	want := []route.Result{{
		Pool: testPool, Endpoint: testEndpoint, Served: testEndpoint, Attempts: 2, Model: "m", PromptBytes: 2,
		Headers: 30 * time.Millisecond, TTFT: 50 * time.Millisecond,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

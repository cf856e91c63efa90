package processor

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

var modes = []bodyMode{none, buffered, partial, streamed, duplex}

// shapes are exchanges whose request names the model alias, which is to reach
// the server under its real name where the mode allows it.
func shapes() []shape {
	ask := `{"messages":[{"role":"user","content":"hi"}],"model":"alias","stream":true}`
	answer := []string{
		"data: {\"id\":\"r1\",\"object\":\"chat.completion.chunk\",\"model\":\"real-name\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
		"data: {\"id\":\"r1\",\"object\":\"chat.completion.chunk\",\"model\":\"real-name\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\n",
		"data: [DONE]\n\n",
	}
	return []shape{
		{name: "whole", request: []string{ask}, response: answer},
		{name: "empty ends", request: []string{ask}, response: answer, emptyEnd: true},
		{name: "cut at every byte", request: strings.Split(ask, ""), response: strings.Split(strings.Join(answer, ""), "")},
		{name: "trailers both ways", request: []string{ask[:20], ask[20:]}, response: answer, requestTrailers: true, responseTrailers: true},
		{name: "large", request: []string{ask[:len(ask)-1] + `,"x":"` + strings.Repeat("a", 300_000) + `"}`}, response: []string{strings.Repeat("z", 200_000)}},
		{name: "large before the model", request: []string{`{"x":"` + strings.Repeat("a", 150_000), strings.Repeat("b", 150_000) + `",` + ask[1:]}, response: answer},
	}
}

func TestEveryModeAndShape(t *testing.T) {
	for _, request := range modes {
		for _, response := range modes {
			for _, s := range shapes() {
				t.Run(fmt.Sprintf("%s/%s/%s", request, response, s.name), func(t *testing.T) {
					b := newBench(t)
					e := b.inline(request, response)
					got := play(t, e, request, response, s)
					e.hangUp()
					b.drained()
					want := strings.Join(s.request, "")
					if request == buffered || request == partial || request == duplex {
						want = strings.Replace(want, `"alias"`, `"real-name"`, 1)
					}
					if got.upstream != want {
						t.Errorf("the request's body is %q, want %q", cut(got.upstream), cut(want))
					}
					sent := strings.Join(s.response, "")
					if rewritten := want != strings.Join(s.request, ""); rewritten && response != none {
						sent = strings.ReplaceAll(sent, `"real-name"`, `"alias"`)
					}
					if got.downstream != sent {
						t.Errorf("the response's body is %q, want %q", cut(got.downstream), cut(sent))
					}
					checkRouted(t, got)
					if request == buffered && got.set["content-length"] != fmt.Sprint(len(got.upstream)) {
						t.Errorf("content-length is %q, want %d", got.set["content-length"], len(got.upstream))
					}
					if _, set := got.set["content-length"]; set && request != buffered {
						t.Error("content-length is set")
					}
					if n := len(b.telemetry.recorded()); n != btoi(response != none) {
						t.Errorf("got %d records, want %d", n, btoi(response != none))
					}
					if n := b.telemetry.count(countPanic) + b.telemetry.count(countSpurious); n != 0 {
						t.Errorf("got %d panics and spurious messages", n)
					}
				})
			}
		}
	}
}

// checkRouted checks what every routed request has.
func checkRouted(t *testing.T, got seen) {
	t.Helper()
	const traceID = "01000000000000000000000000000002"
	for k, want := range map[string]string{
		destinationHeader: testEndpoint,
		traceparentHeader: "00-" + traceID + "-0300000000000004-01",
	} {
		if got.set[k] != want {
			t.Errorf("%s is %q, want %q", k, got.set[k], want)
		}
	}
	for k, want := range map[string]string{
		"envoy.lb/" + destinationHeader: testEndpoint,
		"inferspan/trace_id":            traceID,
		"inferspan/pool":                testPool,
		"inferspan/endpoint":            testEndpoint,
	} {
		if got.metadata[k] != want {
			t.Errorf("metadata %s is %q, want %q", k, got.metadata[k], want)
		}
	}
	if len(got.responseSet) > 0 && got.responseSet[traceIDHeader] != traceID {
		t.Errorf("%s is %q, want %q", traceIDHeader, got.responseSet[traceIDHeader], traceID)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func cut(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return s
}

func TestObserveSendsNothingAndEndsFirst(t *testing.T) {
	b := newBench(t)
	e := b.observed()
	e.send(requestHeaders(false, chatHead()...))
	e.arrived()
	e.send(requestBody(`{"model":"alias","stream":true,`, false))
	e.send(requestBody(`"messages":[]}`, true))
	e.send(attributes(responseHeaders(false, streamHead...), map[string]any{
		"upstream.address": "10.0.0.9:8000", "upstream.request_attempt_count": 2,
	}))
	e.send(responseBody("data: [DONE]\n\n", false))
	e.send(responseBody("", true))
	e.ended()
	r := b.one()
	if r.Route.Served != "10.0.0.9:8000" || r.Route.Attempts != 2 || r.Route.Reason != unrouted || r.Route.Endpoint != "" {
		t.Errorf("the route is %+v", r.Route)
	}
	if r.Asked.Model != "alias" || r.RequestModel != meter.Some("alias") || !r.Asked.Stream {
		t.Errorf("asked is %+v", r.Asked)
	}
	if len(b.router.asked) != 0 || b.router.begins != 0 {
		t.Error("the router was asked")
	}
}

func TestRequestWithoutBody(t *testing.T) {
	for _, request := range modes {
		t.Run(request.String(), func(t *testing.T) {
			b := newBench(t)
			e := b.inline(request, streamed)
			got := play(t, e, request, streamed, shape{
				head:         []string{":method", "GET", ":path", "/v1/models"},
				responseHead: []string{":status", "204"},
			})
			e.hangUp()
			checkRouted(t, got)
			if len(got.set) != 2 {
				t.Errorf("%v is set, want the destination and the trace context only", got.set)
			}
			if r := b.one(); r.Status != 204 || r.Outcome != meter.OK || r.Method != http.MethodGet || r.Path != "/v1/models" {
				t.Errorf("the record is %+v", r)
			}
			if q := b.router.asked[0]; q.HasBody || q.HasModel || q.JSON {
				t.Errorf("the router was asked %+v", q)
			}
		})
	}
}

// A stream that begins with the response, as for Envoy's own answers, has a
// record without a request, and passes as it came.
func TestResponseWithoutRequest(t *testing.T) {
	for _, response := range []bodyMode{buffered, partial, streamed, duplex} {
		for name, s := range map[string]shape{
			"JSON":         {response: []string{`{"choices"`, `:[]}`}, responseHead: []string{":status", "200", "content-type", "application/json"}},
			"an empty end": {response: []string{`{"choices"`, `:[]}`}, emptyEnd: true},
			"no JSON":      {response: []string{"no healthy upstream"}, responseHead: []string{":status", "503"}},
			"trailers":     {response: []string{"x"}, responseTrailers: true},
			"no body":      {responseHead: []string{":status", "413"}},
		} {
			t.Run(response.String()+"/"+name, func(t *testing.T) {
				b := newBench(t)
				s.localReply = true
				e := b.inline(buffered, response)
				got := play(t, e, buffered, response, s)
				e.hangUp()
				if want := strings.Join(s.response, ""); got.downstream != want {
					t.Errorf("the body is %q, want %q", got.downstream, want)
				}
				if len(got.responseSet) != 1 || got.responseSet[traceIDHeader] == "" {
					t.Errorf("%v is set", got.responseSet)
				}
				if r := b.one(); r.Path != "" || r.RequestModel.OK || r.Status == 0 {
					t.Errorf("the record has path %q, status %d", r.Path, r.Status)
				}
				if len(b.router.asked) != 0 {
					t.Error("the router was asked")
				}
			})
		}
	}
}

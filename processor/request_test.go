package processor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// deciding are the modes in which the body is there before the decision.
var deciding = []bodyMode{buffered, partial, duplex}

// useRouter makes b decide as the real router does.
func (b *bench) useRouter(c route.Config) {
	b.t.Helper()
	r, err := route.New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.router.decideBy = r.Decide
}

func defaultPool(endpoints ...string) route.Config {
	at := make([]route.Endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		at = append(at, route.Endpoint{Address: e})
	}
	return route.Config{Pools: []route.Pool{{Name: route.DefaultPool, Endpoints: at}}}
}

// What names no model goes to the pool default and keeps its bytes.
func TestBodiesThatNameNoModel(t *testing.T) {
	for _, mode := range deciding {
		for name, body := range map[string][]string{
			"not JSON":           {"no healthy upstream"},
			"no model":           {`{"prompt":"hello world"}`},
			"a model inside":     {`{"metadata":{"model":"alias"}}`},
			"an array":           {`[{"model":"alias"}]`},
			"breaks off":         {`{"model":"ali`},
			"no bytes":           {""},
			"a byte each":        strings.Split(`{"prompt":"hello world"}`, ""),
			"a model of no name": {`{"model":7}`},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				b := newBench(t)
				b.useRouter(defaultPool(testEndpoint))
				e := b.inline(mode, streamed)
				got := play(t, e, mode, streamed, shape{request: body, response: []string{"{}"}})
				e.hangUp()
				if want := strings.Join(body, ""); got.upstream != want {
					t.Errorf("the body is %q, want %q", got.upstream, want)
				}
				if got.set[destinationHeader] != testEndpoint || got.metadata["inferspan/pool"] != route.DefaultPool {
					t.Errorf("it goes to %q of %q", got.set[destinationHeader], got.metadata["inferspan/pool"])
				}
				if _, set := got.set["content-length"]; set {
					t.Error("content-length is set")
				}
				b.one()
			})
		}
	}
}

func TestRejections(t *testing.T) {
	for name, c := range map[string]struct {
		config   route.Config
		request  []string
		metadata *core.Metadata
		status   int32
		reason   string
	}{
		"a model nobody serves": {
			config: route.Config{}, request: []string{`{"model":"m"}`}, status: 404, reason: route.ReasonUnknownModel,
		},
		"no model": {config: route.Config{}, request: []string{`{}`}, status: 400, reason: route.ReasonNoModel},
		"no body":  {config: route.Config{}, status: 404, reason: route.ReasonNoModel},
		"an empty pool": {
			config: defaultPool(), request: []string{`{"model":"m"}`}, status: 503, reason: route.ReasonNoEndpoint,
		},
		"an empty pool, no body": {config: defaultPool(), status: 503, reason: route.ReasonNoEndpoint},
		"an empty subset": {
			config: defaultPool(testEndpoint), request: []string{`{"model":"m"}`}, metadata: subset(),
			status: 503, reason: route.ReasonNotInSubset,
		},
		"a subset with another port": {
			config: defaultPool(testEndpoint), request: []string{`{"model":"m"}`}, metadata: subset("10.0.0.1:9999"),
			status: 503, reason: route.ReasonNotInSubset,
		},
		"a subset, no body": {
			config: defaultPool(testEndpoint), metadata: subset("10.9.9.9:8001"), status: 503, reason: route.ReasonNotInSubset,
		},
	} {
		for _, mode := range deciding {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				b := newBench(t)
				b.useRouter(c.config)
				e := b.inline(mode, streamed)
				e.metadata = c.metadata
				got := play(t, e, mode, streamed, shape{request: c.request})
				checkRejection(t, got, c.status, c.reason)
				if r := b.one(); r.Outcome != meter.Rejected || r.Status != int(c.status) || r.Route.Reason != c.reason {
					t.Errorf("the record is %s, %d, %s", r.Outcome, r.Status, r.Route.Reason)
				}
				if b.router.begins != 0 {
					t.Error("it is counted as in flight")
				}
			})
		}
	}
}

// The list of models is answered by the configuration, whatever the mode, and is
// no failure.
func TestModelsAreAnswered(t *testing.T) {
	c := defaultPool(testEndpoint)
	c.Models = []route.Model{{Name: "m", Targets: []route.Target{{Pool: route.DefaultPool, Weight: 1}}}}
	for _, request := range modes {
		for _, response := range modes {
			for _, method := range []string{"GET", "HEAD"} {
				b := newBench(t)
				b.useRouter(c)
				e := b.inline(request, response)
				got := play(t, e, request, response, shape{head: []string{":method", method, ":path", "/v1/models?limit=1"}})
				i := got.immediate
				if i == nil {
					t.Fatalf("%s, %s: it is not answered", request, response)
				}
				want := `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"inferspan"}]}`
				if i.GetStatus().GetCode() != 200 || string(i.GetBody()) != want || i.GetDetails() != "inferspan_models" {
					t.Errorf("%s, %s: got %v", request, response, i)
				}
				headers := answeredHeaders(i)
				if headers["content-type"] != "application/json" || headers[reasonHeader] != "models" || headers[traceIDHeader] == "" || len(headers) != 3 {
					t.Errorf("%s, %s: the headers are %v", request, response, headers)
				}
				// With NONE too: nobody else sees the request.
				if r := b.one(); r.Outcome != meter.OK || r.Class() != meter.ClassDone || r.Status != 200 || r.ErrorType != "" || r.Route.Reason != "models" || r.Route.Pool != "" {
					t.Errorf("%s, %s: the record is %+v", request, response, r)
				}
				if b.router.begins != 0 {
					t.Error("it is counted as in flight")
				}
			}
		}
	}
}

// What the configuration does not name is not there, though the pool default
// might serve it; and what observes never answers.
func TestModelsThatAreNotAnswered(t *testing.T) {
	c := defaultPool(testEndpoint)
	c.Models = []route.Model{{Name: "m", Targets: []route.Target{{Pool: route.DefaultPool, Weight: 1}}}}
	b := newBench(t)
	b.useRouter(c)
	got := play(t, b.inline(buffered, streamed), buffered, streamed, shape{head: []string{":method", "GET", ":path", "/v1/models/other"}})
	checkRejection(t, got, 404, route.ReasonUnknownModel)
	if r := b.one(); r.Outcome != meter.Rejected {
		t.Errorf("the outcome is %s", r.Outcome)
	}

	b = newBench(t)
	b.useRouter(c)
	e := b.observed()
	e.send(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
	e.arrived()
	e.send(responseHeaders(false, ":status", "200", "content-type", "application/json"))
	e.send(responseBody(`{"object":"list","data":[]}`, true))
	e.ended()
	if r := b.one(); r.Outcome != meter.OK || r.Route.Reason != unrouted {
		t.Errorf("the observed record is %s, %s", r.Outcome, r.Route.Reason)
	}
}

// answeredHeaders are the headers of an answer of our own.
func answeredHeaders(i *extproc.ImmediateResponse) map[string]string {
	headers := map[string]string{}
	for _, h := range i.GetHeaders().GetSetHeaders() {
		headers[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
	}
	return headers
}

func checkRejection(t *testing.T, got seen, status int32, reason string) {
	t.Helper()
	i := got.immediate
	if i == nil {
		t.Fatal("it is not rejected")
	}
	if int32(i.GetStatus().GetCode()) != status || i.GetDetails() != "inferspan_"+reason || got.metadata["inferspan/reason"] != reason {
		t.Errorf("got %v with metadata %v, want %d for %s", i, got.metadata, status, reason)
	}
	headers := answeredHeaders(i)
	want := map[string]string{
		"content-type": "application/json", "x-inferspan-reason": reason, "x-trace-id": "01000000000000000000000000000002",
	}
	if status == 503 {
		want["retry-after"] = "1"
	}
	if !maps.Equal(headers, want) {
		t.Errorf("its headers are %v, want %v", headers, want)
	}
	var body struct {
		Error struct {
			Message, Type string
			Code          int32
		}
	}
	if err := json.Unmarshal(i.GetBody(), &body); err != nil || body.Error.Message == "" || body.Error.Type == "" || body.Error.Code != status {
		t.Errorf("its body is %s: %v", i.GetBody(), err)
	}
}

// A subset hint holds for the exchange, whichever message it comes with.
func TestSubsetOnTheHeadersOnly(t *testing.T) {
	for _, mode := range deciding {
		b := newBench(t)
		b.useRouter(defaultPool("10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"))
		e := b.inline(mode, streamed)
		e.metadata = subset("10.0.0.2:8000")
		e.send(requestHeaders(false, chatHead()...))
		e.metadata = nil
		if mode != duplex {
			e.recv()
		}
		e.send(requestBody(`{"model":"m"}`, true))
		r := e.recv()
		md := r.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()
		if got := md[destinationHeader].GetStringValue(); got != "10.0.0.2:8000" {
			t.Errorf("%s: it goes to %q", mode, got)
		}
		e.hangUp()
		b.one()
	}
}

// A model's name can't begin a line of its own in Envoy's access log.
func TestModelInMetadataIsClean(t *testing.T) {
	for _, mode := range deciding {
		b := newBench(t)
		e := b.inline(mode, streamed)
		e.send(requestHeaders(false, chatHead()...))
		if mode != duplex {
			e.recv()
		}
		e.send(requestBody(`{"model":"a\n\u001b[31m`+strings.Repeat("b", 200)+`"}`, true))
		md := e.recv().GetDynamicMetadata().GetFields()["inferspan"].GetStructValue().GetFields()
		want := "a\ufffd\ufffd[31m" + strings.Repeat("b", 117)
		if got := md[metadataModel].GetStringValue(); got != want {
			t.Errorf("%s: the model in the metadata is %q, want %q", mode, got, want)
		}
		e.hangUp()
		b.one()
	}
}

// Clients' copies of control headers are removed and never trusted, and only
// what changed is set.
func TestControlHeaders(t *testing.T) {
	spoofed := []string{
		"x-gateway-destination-endpoint", "127.0.0.1:9901", "x-gateway-destination-endpoint-subset", "127.0.0.1:9901",
		"X-Inferspan-Pool", "mine", "x-inferspan-ctx", "1", "x-inferspan-ctx", "2", "x-inferspan-reason", "none",
	}
	want := []string{
		"x-gateway-destination-endpoint", "x-gateway-destination-endpoint-subset", "x-inferspan-ctx", "x-inferspan-pool", "x-inferspan-reason",
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBench(t)
			e := b.inline(mode, streamed)
			got := play(t, e, mode, streamed, shape{
				head: append(chatHead(), spoofed...), request: []string{`{"model":"m"}`}, response: []string{"{}"},
			})
			e.hangUp()
			slices.Sort(got.removed)
			if !slices.Equal(got.removed, want) {
				t.Errorf("removed are %q, want %q", got.removed, want)
			}
			checkRouted(t, got)
			if len(got.set) != 2 {
				t.Errorf("%v is set, want the destination and the trace context only", got.set)
			}
			b.one()
		})
	}
}

func TestPoolHeader(t *testing.T) {
	b := newBench(t, func(c *Config) { c.PoolHeader = true })
	e := b.inline(buffered, streamed)
	got := play(t, e, buffered, streamed, shape{request: []string{`{"model":"m"}`}, response: []string{"{}"}})
	e.hangUp()
	if got.set[poolHeader] != testPool || !got.cleared {
		t.Errorf("the pool's header is %q, route cleared %v", got.set[poolHeader], got.cleared)
	}
	b.one()
}

// A request may be held back for its model up to a limit.
func TestHoldLimit(t *testing.T) {
	const size = 10_000
	hold := func(c *Config) { c.HoldLimit = size }
	opening := `{"x":"`
	t.Run("at the limit", func(t *testing.T) {
		b := newBench(t, hold)
		e := b.inline(duplex, streamed)
		got := play(t, e, duplex, streamed, shape{
			request:  []string{opening + strings.Repeat("a", size-len(opening)), `","model":"alias"}`},
			response: []string{"{}"},
		})
		e.hangUp()
		if !strings.HasSuffix(got.upstream, `"real-name"}`) {
			t.Errorf("the body ends with %q", got.upstream[len(got.upstream)-20:])
		}
		b.one()
	})
	t.Run("beyond", func(t *testing.T) {
		b := newBench(t, hold)
		e := b.inline(duplex, streamed)
		got := play(t, e, duplex, streamed, shape{
			request: []string{opening + strings.Repeat("a", size-len(opening)+1), `","model":"alias"}`},
		})
		checkRejection(t, got, 413, "too_large")
		if r := b.one(); r.Outcome != meter.Rejected || r.Status != 413 {
			t.Errorf("the record is %s, %d", r.Outcome, r.Status)
		}
	})
}

// The reply to the headers waits for the model and for nothing more.
func TestDuplexDecidesAsSoonAsItCan(t *testing.T) {
	b := newBench(t)
	e := b.inline(duplex, duplex)
	e.send(requestHeaders(false, chatHead()...))
	e.send(requestBody(`{"model":"ali`, false))
	e.send(requestBody(`as",`, false))
	if r := e.recv(); r.GetRequestHeaders() == nil {
		t.Fatalf("got %v, want the reply to the headers", r)
	}
	body := string(e.recv().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody())
	if body != `{"model":"real-name",` {
		t.Errorf("the first piece is %q", body)
	}
	// Frames are echoed as they come.
	e.send(requestBody(`"n":1,`, false))
	if got := e.recv().GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse(); string(got.GetBody()) != `"n":1,` || got.GetEndOfStream() {
		t.Errorf("the second piece is %v", got)
	}
	e.closeSend()
	if r := b.one(); r.Outcome != meter.Aborted || r.Asked.N != 1 || r.Asked.Model != "alias" {
		t.Errorf("the record is %s, asked %+v", r.Outcome, r.Asked)
	}
}

func TestFiveMegabytesInOneMessage(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 5<<20) + `"}],"model":"alias"}`
	for _, mode := range deciding {
		b := newBench(t)
		e := b.inline(mode, mode)
		got := play(t, e, mode, mode, shape{request: []string{body}, response: []string{body}})
		e.hangUp()
		if want := strings.Replace(body, "alias", "real-name", 1); got.upstream != want || got.downstream != body {
			t.Errorf("%s: %d and %d bytes passed, want %d and %d", mode, len(got.upstream), len(got.downstream), len(want), len(body))
		}
		b.one()
	}
}

// An Envoy that does not say its modes has those that are configured.
func TestAssumedModes(t *testing.T) {
	b := newBench(t)
	e := b.open()
	got := play(t, e, buffered, streamed, shape{request: []string{`{"model":"alias"}`}, response: []string{"{}"}})
	e.hangUp()
	checkRouted(t, got)
	if got.upstream != `{"model":"real-name"}` {
		t.Errorf("the body is %q", got.upstream)
	}
	b.one()
}

// Headers come in value or in raw_value, and several have one name.
func TestBothHeaderForms(t *testing.T) {
	for name, form := range map[string]func(k, v string) *core.HeaderValue{
		"value":     func(k, v string) *core.HeaderValue { return &core.HeaderValue{Key: k, Value: v} },
		"raw_value": func(k, v string) *core.HeaderValue { return &core.HeaderValue{Key: k, RawValue: []byte(v)} },
	} {
		t.Run(name, func(t *testing.T) {
			headers := func(pairs ...string) *extproc.HttpHeaders {
				h := &extproc.HttpHeaders{Headers: &core.HeaderMap{}}
				for i := 0; i < len(pairs); i += 2 {
					h.Headers.Headers = append(h.Headers.Headers, form(pairs[i], pairs[i+1]))
				}
				return h
			}
			b := newBench(t)
			e := b.inline(buffered, streamed)
			h := headers(chatHead()...)
			h.EndOfStream = true
			e.send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: h}})
			e.recv()
			e.send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{
				ResponseHeaders: headers(":status", "503", "content-type", "application/json", "set-cookie", "a=1", "set-cookie", "b=2"),
			}})
			r := e.recv()
			for _, h := range r.GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
				if h.GetHeader().GetKey() != traceIDHeader {
					t.Errorf("%v is set, though it did not change", h)
				}
			}
			e.send(responseBody(`{"error":{"message":"m","type":"t"}}`, true))
			e.recv()
			e.hangUp()
			if r := b.one(); r.Status != 503 || r.Outcome != meter.HTTPError || r.Path != "/v1/chat/completions" || r.ErrorType != "t" {
				t.Errorf("the record has status %d, outcome %s, path %s, error %s", r.Status, r.Outcome, r.Path, r.ErrorType)
			}
		})
	}
}

// The parent's candidates reach telemetry, and a client's tracestate does not
// outlive its traceparent.
func TestTraceContext(t *testing.T) {
	const client = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
	const envoys = "00-cccccccccccccccccccccccccccccccc-dddddddddddddddd-00"
	run := func(t *testing.T, state string) (seen, Begin) {
		t.Helper()
		b := newBench(t)
		b.telemetry.trace.State = state
		e := b.open("traceparent", envoys, "tracestate", "e=1")
		got := play(t, e, buffered, streamed, shape{
			head:    append(chatHead(), "traceparent", client, "tracestate", "a=1", "tracestate", "b=2"),
			request: []string{`{"model":"alias"}`}, response: []string{"{}"},
		})
		e.hangUp()
		b.one()
		checkRouted(t, got)
		return got, b.telemetry.begins[0]
	}
	got, begin := run(t, "")
	want := Begin{
		Operation: "chat", Model: "alias", EnvoyTraceparent: envoys, EnvoyTracestate: "e=1",
		ClientTraceparent: client, ClientTracestate: "a=1,b=2",
	}
	if begin != want {
		t.Errorf("telemetry got %+v, want %+v", begin, want)
	}
	if !slices.Equal(got.removed, []string{tracestateHeader}) {
		t.Errorf("removed are %q", got.removed)
	}
	if got, _ := run(t, "v=1"); got.set[tracestateHeader] != "v=1" || len(got.removed) != 0 {
		t.Errorf("tracestate is %q, removed are %q", got.set[tracestateHeader], got.removed)
	}
}

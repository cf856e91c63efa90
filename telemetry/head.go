package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/inferspan/inferspan/processor/meter"
)

// head makes the ids and the head decision of exchanges, once for each: the
// same go upstream at once and on the span at the end.
type head struct {
	sampler        sdktrace.Sampler
	clientContext  string
	ignoreParent   bool
	upstreamAlways bool
}

func newHead(c TraceConfig, s sdktrace.Sampler) *head {
	return &head{
		sampler:        s,
		clientContext:  c.ClientContext,
		ignoreParent:   c.ParentSampled == sampledIgnore,
		upstreamAlways: c.UpstreamSampled == upstreamAlways,
	}
}

// Begin makes the exchange's ids and the head decision.
func (t *Telemetry) Begin(b meter.Begin) meter.Trace { return t.rules.Load().head.begin(b) }

func (h *head) begin(b meter.Begin) meter.Trace {
	parent, link := h.parent(b)
	tr := meter.Trace{SpanID: newSpanID()}
	if parent.IsValid() {
		tr.TraceID, tr.ParentID = parent.TraceID(), parent.SpanID()
		tr.State = parent.TraceState().String()
	} else {
		tr.TraceID = newTraceID()
	}
	params := sdktrace.SamplingParameters{
		ParentContext: context.Background(),
		TraceID:       tr.TraceID,
		Name:          spanName(b.Operation, clean(b.Model)),
		Kind:          trace.SpanKindClient,
		Attributes:    startAttributes(b.Operation, clean(b.Model)),
	}
	if parent.IsValid() && !h.ignoreParent {
		params.ParentContext = trace.ContextWithRemoteSpanContext(params.ParentContext, parent)
	}
	if link.IsValid() {
		tr.LinkTraceID, tr.LinkSpanID = link.TraceID(), link.SpanID()
		tr.LinkSampled, tr.LinkState = link.IsSampled(), link.TraceState().String()
		params.Links = []trace.Link{{SpanContext: link}}
	}
	tr.Sampled = h.sampler.ShouldSample(params).Decision == sdktrace.RecordAndSample
	tr.Forced, tr.Detail = parseWish(b.Wish)
	tr.Sampled = tr.Sampled || tr.Forced
	tr.UpstreamSampled = tr.Sampled || h.upstreamAlways
	return tr
}

// parent returns the exchange's parent and what is to be linked; either may be
// invalid. What Envoy says wins over what the client says: where Envoy traces,
// the client's context is its parent already.
func (h *head) parent(b meter.Begin) (parent, link trace.SpanContext) {
	if sc := extract(b.EnvoyTraceparent, b.EnvoyTracestate); sc.IsValid() {
		return sc, trace.SpanContext{}
	}
	if h.clientContext == clientIgnore {
		return parent, link
	}
	client := extract(b.ClientTraceparent, b.ClientTracestate)
	if h.clientContext == clientLink {
		return trace.SpanContext{}, client
	}
	return client, trace.SpanContext{}
}

func startAttributes(operation, model string) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, 0, 3)
	kvs = append(kvs, keyOperation.String(operation), keyProvider.String(provider))
	if model != "" {
		kvs = append(kvs, keyRequestModel.String(model))
	}
	return kvs
}

func spanName(operation, model string) string {
	if model == "" {
		return operation
	}
	return operation + " " + model
}

// contextHeaders carries one trace context.
type contextHeaders struct{ parent, state string }

func (c contextHeaders) Get(key string) string {
	switch key {
	case "traceparent":
		return c.parent
	case "tracestate":
		return c.state
	}
	return ""
}

func (contextHeaders) Set(string, string) {}
func (contextHeaders) Keys() []string     { return []string{"traceparent", "tracestate"} }

func extract(parent, state string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), contextHeaders{parent, state})
	sc := trace.SpanContextFromContext(ctx)
	return sc.WithTraceState(capped(sc.TraceState()))
}

const (
	// maxState is how much of a tracestate is handed on: no less than the W3C asks
	// for, and with it all that most send.
	maxState = 512
	// longMember is the length from which a member is left out first.
	longMember = 128
)

// capped is s, cut to maxState bytes as the W3C says: first its long members are
// left out, then those that changed longest ago, which are the last.
func capped(s trace.TraceState) trace.TraceState {
	for _, long := range []int{longMember, 0} {
		size := len(s.String())
		if size <= maxState {
			return s
		}
		var keys []string
		s.Walk(func(key, value string) bool {
			if len(key)+1+len(value) > long {
				keys = append(keys, key)
			}
			return true
		})
		for _, key := range slices.Backward(keys) {
			if len(s.String()) > maxState {
				s = s.Delete(key)
			}
		}
	}
	return s
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

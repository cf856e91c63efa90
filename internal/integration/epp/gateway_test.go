//go:build integration

package epp

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// The names of the protocol.
const (
	destination = "x-gateway-destination-endpoint"
	served      = "x-gateway-destination-endpoint-served"
	subsetHint  = "x-gateway-destination-endpoint-subset"
)

// gateway is one ext_proc stream from the gateway's side, FULL_DUPLEX_STREAMED
// both ways as the protocol wants it.
type gateway struct {
	t      *testing.T
	stream extproc.ExternalProcessor_ProcessClient
	begun  bool
	// lasting is metadata that comes with every message.
	lasting *core.Metadata
}

func (p *picker) open(t *testing.T) *gateway {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	stream, err := extproc.NewExternalProcessorClient(p.conn).Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &gateway{t: t, stream: stream}
}

// send sends m, with md for this message alone.
func (g *gateway) send(m *extproc.ProcessingRequest, md ...*core.Metadata) {
	g.t.Helper()
	if !g.begun {
		m.ProtocolConfig = &extproc.ProtocolConfiguration{
			RequestBodyMode: filter.ProcessingMode_FULL_DUPLEX_STREAMED, ResponseBodyMode: filter.ProcessingMode_FULL_DUPLEX_STREAMED,
		}
		g.begun = true
	}
	m.MetadataContext = g.lasting
	for _, one := range md {
		m.MetadataContext = one
	}
	if err := g.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		g.t.Fatalf("send: %v", err)
	}
}

func (g *gateway) recv() *extproc.ProcessingResponse {
	g.t.Helper()
	r, err := g.stream.Recv()
	if err != nil {
		g.t.Fatalf("receive: %v", err)
	}
	return r
}

// body collects the pieces of a body until the one that ends it, or until n
// bytes came.
func (g *gateway) body(n int) (body []byte, ended bool) {
	g.t.Helper()
	for !ended && len(body) < n {
		r := g.recv()
		b := r.GetRequestBody()
		if b == nil {
			b = r.GetResponseBody()
		}
		if b == nil {
			g.t.Fatalf("got %v, want a piece of a body", r)
		}
		s := b.GetResponse().GetBodyMutation().GetStreamedResponse()
		if s == nil {
			g.t.Fatalf("got %v, want a streamed body", r)
		}
		if len(s.GetBody()) > 62_000 {
			g.t.Errorf("a piece has %d bytes, want 62,000 at most", len(s.GetBody()))
		}
		body, ended = append(body, s.GetBody()...), s.GetEndOfStream()
	}
	return body, ended
}

// picked is the reply to the request's headers, which must be no rejection.
func (g *gateway) picked() (header, metadata string, set map[string]string) {
	g.t.Helper()
	r := g.recv()
	h := r.GetRequestHeaders()
	if h == nil {
		g.t.Fatalf("got %v, want the reply to the headers", r)
	}
	set = map[string]string{}
	for _, o := range h.GetResponse().GetHeaderMutation().GetSetHeaders() {
		name := o.GetHeader().GetKey()
		if _, twice := set[name]; twice {
			g.t.Errorf("%s is set twice", name)
		}
		if o.GetAppendAction() != core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			g.t.Errorf("%s is set with %v", name, o.GetAppendAction())
		}
		set[name] = string(o.GetHeader().GetRawValue())
	}
	md := r.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()
	return set[destination], md[destination].GetStringValue(), set
}

// pick sends a whole chat request and returns where it goes.
func (g *gateway) pick(body string) string {
	g.t.Helper()
	g.send(headers(false, chat...))
	g.send(requestBody(body, true))
	header, metadata, _ := g.picked()
	if header != metadata {
		g.t.Errorf("the header says %q, the metadata %q", header, metadata)
	}
	if got, ended := g.body(len(body) + 1); string(got) != body || !ended {
		g.t.Errorf("the body is %q, ended %t, want %q", got, ended, body)
	}
	return header
}

// rejected is the answer that the gateway is to give.
func (g *gateway) rejected() *extproc.ImmediateResponse {
	g.t.Helper()
	r := g.recv()
	if r.GetImmediateResponse() == nil {
		g.t.Fatalf("got %v, want an answer of the picker's own", r)
	}
	return r.GetImmediateResponse()
}

// chat are the headers of a chat request.
var chat = []string{
	":method", "POST", ":path", "/v1/chat/completions", ":authority", "api", "content-type", "application/json", "x-request-id", "epp-1",
}

func headerMap(pairs ...string) *core.HeaderMap {
	m := &core.HeaderMap{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.Headers = append(m.Headers, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return m
}

func headers(end bool, pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extproc.HttpHeaders{Headers: headerMap(pairs...), EndOfStream: end},
	}}
}

func requestBody(body string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
		RequestBody: &extproc.HttpBody{Body: []byte(body), EndOfStream: end},
	}}
}

func requestTrailers(pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestTrailers{
		RequestTrailers: &extproc.HttpTrailers{Trailers: headerMap(pairs...)},
	}}
}

func responseHeaders(end bool, pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: &extproc.HttpHeaders{Headers: headerMap(pairs...), EndOfStream: end},
	}}
}

func responseBody(body string, end bool) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
		ResponseBody: &extproc.HttpBody{Body: []byte(body), EndOfStream: end},
	}}
}

func responseTrailers(pairs ...string) *extproc.ProcessingRequest {
	return &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{
		ResponseTrailers: &extproc.HttpTrailers{Trailers: headerMap(pairs...)},
	}}
}

// metadata is filter metadata with one key in one namespace.
func metadata(t *testing.T, namespace, key string, value any) *core.Metadata {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{key: value})
	if err != nil {
		t.Fatal(err)
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{namespace: s}}
}

func subset(t *testing.T, endpoints ...any) *core.Metadata {
	t.Helper()
	return metadata(t, "envoy.lb.subset_hint", subsetHint, endpoints)
}

// names are the keys of set, in order.
func names(set map[string]string) []string { return slices.Sorted(maps.Keys(set)) }

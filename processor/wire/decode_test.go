package wire

import (
	"reflect"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// read is in as it comes over the wire, as the reference reads it too.
func read(t *testing.T, in *extproc.ProcessingRequest) Message {
	t.Helper()
	b, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var m, want Message
	if err := m.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	decode(in, &want)
	same(t, &m, &want)
	return m
}

// same wants two messages equal, in what they say.
func same(t *testing.T, got, want *Message) {
	t.Helper()
	opts := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Message{})}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("the message differs from the reference (-want +got):\n%s", diff)
	}
}

// object makes a Struct of plain values.
func object(t *testing.T, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodePhases(t *testing.T) {
	headers := &core.HeaderMap{Headers: []*core.HeaderValue{
		{Key: ":status", RawValue: []byte("200")},
		{Key: "set-cookie", RawValue: []byte("a=1")},
		{Key: "set-cookie", Value: "b=2"},
		{Key: "x-empty"},
		{Key: "x-latin", RawValue: []byte{0xE9}},
	}}
	want := []Header{{":status", "200"}, {"set-cookie", "a=1"}, {"set-cookie", "b=2"}, {"x-empty", ""}, {"x-latin", "\xE9"}}
	head := &extproc.HttpHeaders{Headers: headers, EndOfStream: true}
	body := &extproc.HttpBody{Body: []byte("bytes"), EndOfStream: true}
	trailers := &extproc.HttpTrailers{Trailers: headers}
	for _, c := range []struct {
		in   *extproc.ProcessingRequest
		want Message
	}{
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: head}},
			Message{Phase: RequestHeaders, EndOfStream: true, Headers: want},
		},
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: body}},
			Message{Phase: RequestBody, EndOfStream: true, Body: []byte("bytes")},
		},
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestTrailers{RequestTrailers: trailers}},
			Message{Phase: RequestTrailers, EndOfStream: true, Headers: want},
		},
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: head}},
			Message{Phase: ResponseHeaders, EndOfStream: true, Headers: want},
		},
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: body}},
			Message{Phase: ResponseBody, EndOfStream: true, Body: []byte("bytes")},
		},
		{
			&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: trailers}},
			Message{Phase: ResponseTrailers, EndOfStream: true, Headers: want},
		},
		{&extproc.ProcessingRequest{}, Message{}},
		{&extproc.ProcessingRequest{ObservabilityMode: true}, Message{Observe: true}},
		// Oneofs that are set and hold nothing.
		{&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{}}, Message{Phase: RequestHeaders}},
		{&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{}}, Message{Phase: ResponseBody}},
	} {
		m := read(t, c.in)
		same(t, &m, &c.want)
		if got, want := m.Phase.String(), c.want.Phase.String(); got != want || got == "" {
			t.Errorf("the phase is %q, want %q", got, want)
		}
	}
}

func TestDecodeModes(t *testing.T) {
	for in, want := range map[filter.ProcessingMode_BodySendMode]BodyMode{
		filter.ProcessingMode_NONE:                 ModeNone,
		filter.ProcessingMode_BUFFERED:             ModeBuffered,
		filter.ProcessingMode_BUFFERED_PARTIAL:     ModeBufferedPartial,
		filter.ProcessingMode_STREAMED:             ModeStreamed,
		filter.ProcessingMode_FULL_DUPLEX_STREAMED: ModeFullDuplex,
		99: ModeUnknown,
	} {
		m := read(t, &extproc.ProcessingRequest{ProtocolConfig: &extproc.ProtocolConfiguration{
			RequestBodyMode: in, ResponseBodyMode: in,
		}})
		if !m.HasConfig || m.RequestMode != want || m.ResponseMode != want {
			t.Errorf("%s: got %+v", in, m)
		}
	}
}

func TestDecodeAttributes(t *testing.T) {
	for _, c := range []struct {
		in   map[string]any
		want Attributes
	}{
		{
			map[string]any{
				"request.time": "2026-11-30T10:10:22.081548+00:00", "request.id": "id", "upstream.address": "10.0.0.1:8000",
				"upstream.request_attempt_count": 2.0, "response.code_details": "via_upstream", "response.flags": 4.0,
			},
			Attributes{
				RequestTime: "2026-11-30T10:10:22.081548+00:00", RequestID: "id", UpstreamAddress: "10.0.0.1:8000",
				Attempts: 2, CodeDetails: "via_upstream", Flags: "4",
			},
		},
		{map[string]any{"upstream.request_attempt_count": "3", "response.flags": "UF"}, Attributes{Attempts: 3, Flags: "UF"}},
		{map[string]any{"upstream.request_attempt_count": "many"}, Attributes{}},
		{map[string]any{"upstream.request_attempt_count": -1.0}, Attributes{}},
		{map[string]any{"upstream.request_attempt_count": 1e300}, Attributes{}},
		{map[string]any{"upstream.request_attempt_count": []any{1.0}}, Attributes{}},
		{map[string]any{"request.time": 7.0, "request.id": nil}, Attributes{}},
	} {
		m := read(t, &extproc.ProcessingRequest{Attributes: map[string]*structpb.Struct{
			"envoy.filters.http.ext_proc": object(t, c.in), "another": object(t, map[string]any{"request.id": "no"}),
		}})
		if m.Attributes != c.want {
			t.Errorf("%v: got %+v, want %+v", c.in, m.Attributes, c.want)
		}
	}
}

func TestDecodeMetadata(t *testing.T) {
	for _, c := range []struct {
		in     map[string]any
		subset []string
		has    bool
	}{
		{map[string]any{"x-gateway-destination-endpoint-subset": []any{"10.0.0.1:8000", "10.0.0.2:8000"}}, []string{"10.0.0.1:8000", "10.0.0.2:8000"}, true},
		{map[string]any{"x-gateway-destination-endpoint-subset": "10.0.0.1:8000, 10.0.0.2:8000,"}, []string{"10.0.0.1:8000", "10.0.0.2:8000"}, true},
		{map[string]any{"x-gateway-destination-endpoint-subset": []any{}}, nil, true},
		{map[string]any{"x-gateway-destination-endpoint-subset": ""}, nil, true},
		{map[string]any{"x-gateway-destination-endpoint-subset": []any{7.0, nil, "10.0.0.1:8000"}}, []string{"10.0.0.1:8000"}, true},
		{map[string]any{"another": "10.0.0.1:8000"}, nil, false},
	} {
		m := read(t, &extproc.ProcessingRequest{MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb.subset_hint": object(t, c.in),
			"envoy.lb":             object(t, map[string]any{"x-gateway-destination-endpoint-served": "10.0.0.3:8000"}),
		}}})
		if m.HasSubset != c.has || !reflect.DeepEqual(append([]string(nil), m.Subset...), c.subset) {
			t.Errorf("%v: got %q, %v", c.in, m.Subset, m.HasSubset)
		}
		if m.ServedEndpoint != "10.0.0.3:8000" {
			t.Errorf("served is %q", m.ServedEndpoint)
		}
	}
}

// Who needs no hint any more gets none.
func TestSkipSubset(t *testing.T) {
	in := &extproc.ProcessingRequest{MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
		subsetNamespace: object(t, map[string]any{subsetKey: "10.0.0.1:8000"}),
		lbNamespace:     object(t, map[string]any{servedKey: "10.0.0.3:8000"}),
	}}}
	s := NewStream(&transport{in: []*extproc.ProcessingRequest{in, in, in}})
	var m Message
	for i, want := range []bool{true, false, false} {
		if err := s.Recv(&m); err != nil {
			t.Fatal(err)
		}
		if m.HasSubset != want || (len(m.Subset) > 0) != want || m.ServedEndpoint != "10.0.0.3:8000" {
			t.Errorf("message %d: hint %q, %t; served %q", i, m.Subset, m.HasSubset, m.ServedEndpoint)
		}
		m.SkipSubset = true
	}
}

// Nothing of a message is left in the next one.
func TestRecvReusesTheMessage(t *testing.T) {
	full := &extproc.ProcessingRequest{
		ObservabilityMode: true,
		ProtocolConfig:    &extproc.ProtocolConfiguration{RequestBodyMode: filter.ProcessingMode_BUFFERED},
		Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{
			Headers: &core.HeaderMap{Headers: []*core.HeaderValue{{Key: "a", Value: "b"}}}, EndOfStream: true,
		}},
		Attributes: map[string]*structpb.Struct{attributesKey: object(t, map[string]any{"request.id": "id"})},
		MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			subsetNamespace: object(t, map[string]any{subsetKey: "10.0.0.1:8000"}),
		}},
	}
	tr := &transport{in: []*extproc.ProcessingRequest{full, {}}}
	s := NewStream(tr)
	var m Message
	for range 2 {
		if err := s.Recv(&m); err != nil {
			t.Fatal(err)
		}
	}
	same(t, &m, &Message{})
	if err := s.Recv(&m); err == nil {
		t.Error("the transport's end is no error")
	}
}

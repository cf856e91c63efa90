package wire

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// seeds are messages whose parts a fuzzer can put together anew.
func seeds(tb testing.TB) [][]byte {
	tb.Helper()
	structOf := func(m map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(m)
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	head := &core.HeaderMap{Headers: []*core.HeaderValue{{Key: "a", RawValue: []byte("b")}, {Key: "c", Value: "d"}}}
	var all [][]byte
	for _, m := range []*extproc.ProcessingRequest{
		{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: []byte("b"), EndOfStream: true}}},
		{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: &extproc.HttpBody{Body: []byte("x")}}, MetadataContext: &core.Metadata{}},
		{
			Request:           &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{Headers: head, EndOfStream: true}},
			ObservabilityMode: true,
			Attributes: map[string]*structpb.Struct{attributesKey: structOf(map[string]any{
				"request.time": "t", "request.id": "i", "upstream.address": "u", "response.code_details": "d",
				"response.flags": 4.0, "upstream.request_attempt_count": 2.0,
			})},
		},
		{
			Request:        &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{Headers: head}},
			ProtocolConfig: &extproc.ProtocolConfiguration{RequestBodyMode: filter.ProcessingMode_BUFFERED, ResponseBodyMode: filter.ProcessingMode_STREAMED},
			MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
				subsetNamespace: structOf(map[string]any{subsetKey: []any{"10.0.0.1:8000", "10.0.0.2:8000"}}),
				lbNamespace:     structOf(map[string]any{servedKey: "10.0.0.3:8000"}),
			}},
		},
		{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{Trailers: head}}},
		{MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			subsetNamespace: structOf(map[string]any{subsetKey: "10.0.0.4:8000,10.0.0.5:8000"}),
		}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// checkUnmarshal wants what generated code takes to be read as that would.
func checkUnmarshal(t *testing.T, b []byte) {
	t.Helper()
	var in extproc.ProcessingRequest
	wrong := proto.Unmarshal(b, &in)
	var got, want Message
	err := got.Unmarshal(b)
	if wrong != nil {
		return // it may be read or not
	}
	if err != nil {
		t.Fatalf("%x is not read: %v", b, err)
	}
	decode(&in, &want)
	same(t, &got, &want)
	if got.Attributes.Attempts < 0 || got.Attributes.Attempts > maxAttempts {
		t.Errorf("attempts are %d", got.Attributes.Attempts)
	}
}

// Two messages after one another are one, by the rules of protobuf: fields that
// come twice replace or extend what was there.
func TestUnmarshalMerges(t *testing.T) {
	all := seeds(t)
	for _, a := range all {
		for _, b := range all {
			for _, c := range all {
				checkUnmarshal(t, append(append(append([]byte(nil), a...), b...), c...))
			}
		}
	}
}

// A value takes the last kind that comes, and lists after one another are one.
func TestUnmarshalKindsOfAValue(t *testing.T) {
	field := func(num protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
	}
	varint := func(num protowire.Number) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), 0)
	}
	list := func(s string) []byte { return field(valueList, field(listValues, field(valueString, []byte(s)))) }
	number := protowire.AppendFixed64(protowire.AppendTag(nil, valueNumber, protowire.Fixed64Type), 0x4010000000000000)
	kinds := [][]byte{
		field(valueString, []byte("10.0.0.1:8000")), list("10.0.0.2:8000"), list("10.0.0.3:8000"), number,
		varint(valueNull), varint(valueBool), field(valueStruct, nil), varint(valueString), field(9, []byte("x")), nil,
	}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, inOne := range []bool{true, false} {
				value := append(field(mapValue, a), field(mapValue, b)...)
				if inOne {
					value = field(mapValue, append(append([]byte(nil), a...), b...))
				}
				for _, at := range []struct {
					num       protowire.Number
					name, key string
				}{
					{requestAttributes, attributesKey, "request.id"},
					{requestAttributes, attributesKey, "response.flags"},
					{requestAttributes, attributesKey, "upstream.request_attempt_count"},
					{requestMetadata, lbNamespace, servedKey},
					{requestMetadata, subsetNamespace, subsetKey},
				} {
					// The key behind the value is a key all the same.
					entry := field(structFields, append(append([]byte(nil), value...), field(mapKey, []byte(at.key))...))
					b := append(field(mapValue, entry), field(mapKey, []byte(at.name))...)
					if at.num == requestMetadata {
						b = field(metadataFilter, b)
					}
					checkUnmarshal(t, field(at.num, b))
				}
			}
		}
	}
}

// What breaks off anywhere is an error wherever generated code has one.
func TestUnmarshalTruncated(t *testing.T) {
	for _, b := range seeds(t) {
		for n := range b {
			checkUnmarshal(t, b[:n])
			var in extproc.ProcessingRequest
			var m Message
			if want, got := proto.Unmarshal(b[:n], &in) != nil, m.Unmarshal(b[:n]) != nil; got != want {
				t.Errorf("%x: an error %t, want %t", b[:n], got, want)
			}
		}
	}
}

// FuzzDecode takes any bytes: what generated code takes is read as that would.
func FuzzDecode(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		checkUnmarshal(t, a)
		checkUnmarshal(t, append(append([]byte(nil), a...), b...))
	})
}

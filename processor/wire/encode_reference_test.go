package wire

import (
	"fmt"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// encode turns r into what Envoy reads: what Marshal does, by generated code. It fails for a reply to no phase.
func encode(r *Reply) (*extproc.ProcessingResponse, error) {
	if r.Phase < RequestHeaders || r.Phase > ResponseTrailers {
		return nil, fmt.Errorf("encode a reply: %d is no phase", r.Phase)
	}
	var out *extproc.ProcessingResponse
	if r.Immediate != nil {
		out = immediate(r.Immediate)
	} else {
		out = phased(r.Phase, &extproc.CommonResponse{
			BodyMutation:    r.body(),
			ClearRouteCache: r.ClearRoute,
		}, mutation(r.Set, r.Remove))
	}
	out.DynamicMetadata = r.metadata()
	return out, nil
}

func (r *Reply) body() *extproc.BodyMutation {
	switch {
	case r.Streamed:
		return &extproc.BodyMutation{Mutation: &extproc.BodyMutation_StreamedResponse{
			StreamedResponse: &extproc.StreamedBodyResponse{Body: r.Body, EndOfStream: r.EndOfStream},
		}}
	case r.HasBody:
		return &extproc.BodyMutation{Mutation: &extproc.BodyMutation_Body{Body: r.Body}}
	}
	return nil
}

// phased wraps c, or for trailers h alone, as the reply to p.
func phased(p Phase, c *extproc.CommonResponse, h *extproc.HeaderMutation) *extproc.ProcessingResponse {
	c.HeaderMutation = h
	var out extproc.ProcessingResponse
	switch p {
	case RequestHeaders:
		out.Response = &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: c}}
	case ResponseHeaders:
		out.Response = &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{Response: c}}
	case RequestBody:
		out.Response = &extproc.ProcessingResponse_RequestBody{RequestBody: &extproc.BodyResponse{Response: c}}
	case ResponseBody:
		out.Response = &extproc.ProcessingResponse_ResponseBody{ResponseBody: &extproc.BodyResponse{Response: c}}
	case RequestTrailers:
		out.Response = &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{HeaderMutation: h}}
	case ResponseTrailers:
		out.Response = &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{HeaderMutation: h}}
	}
	return &out
}

func immediate(i *Immediate) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extproc.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(i.Status)},
			Headers: mutation(i.Headers, nil),
			Body:    i.Body,
			Details: strings.ToValidUTF8(i.Details, "\uFFFD"),
		},
	}}
}

// mutation overwrites and removes headers; Envoy removes first. The action is
// explicit because the default of the field appends.
func mutation(set []Header, remove []string) *extproc.HeaderMutation {
	if len(set) == 0 && len(remove) == 0 {
		return nil
	}
	m := &extproc.HeaderMutation{RemoveHeaders: remove}
	if len(set) == 0 {
		return m
	}
	m.SetHeaders = make([]*core.HeaderValueOption, len(set))
	for i, h := range set {
		m.SetHeaders[i] = &core.HeaderValueOption{
			Header:       &core.HeaderValue{Key: h.Name, RawValue: []byte(h.Value)},
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}
	}
	return m
}

// metadata is the dynamic metadata of r: its top level names the namespaces.
func (r *Reply) metadata() *structpb.Struct {
	if r.Endpoint == "" && len(r.Metadata) == 0 {
		return nil
	}
	md := &structpb.Struct{Fields: make(map[string]*structpb.Value, 2)}
	if r.Endpoint != "" {
		md.Fields[lbNamespace] = structOf(map[string]string{endpointKey: r.Endpoint})
	}
	if len(r.Metadata) > 0 {
		md.Fields[ownNamespace] = structOf(r.Metadata)
	}
	return md
}

func structOf(m map[string]string) *structpb.Value {
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(m))}
	for k, v := range m {
		// Names can be a client's own bytes; protobuf text must be UTF-8.
		s.Fields[k] = structpb.NewStringValue(strings.ToValidUTF8(v, "\uFFFD"))
	}
	return structpb.NewStructValue(s)
}

package wire

import (
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// decode puts in into m, which is released: what Unmarshal does with the same
// bytes, by generated code. Where in carries no phase, such as a message of flow
// control only, m.Phase is 0.
func decode(in *extproc.ProcessingRequest, m *Message) {
	m.Observe = in.GetObservabilityMode()
	if c := in.GetProtocolConfig(); c != nil {
		m.HasConfig = true
		m.RequestMode = modeOf(c.GetRequestBodyMode())
		m.ResponseMode = modeOf(c.GetResponseBodyMode())
	}
	switch r := in.GetRequest().(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		m.decodeHeaders(RequestHeaders, r.RequestHeaders)
	case *extproc.ProcessingRequest_RequestBody:
		m.decodeBody(RequestBody, r.RequestBody)
	case *extproc.ProcessingRequest_RequestTrailers:
		m.decodeTrailers(RequestTrailers, r.RequestTrailers)
	case *extproc.ProcessingRequest_ResponseHeaders:
		m.decodeHeaders(ResponseHeaders, r.ResponseHeaders)
	case *extproc.ProcessingRequest_ResponseBody:
		m.decodeBody(ResponseBody, r.ResponseBody)
	case *extproc.ProcessingRequest_ResponseTrailers:
		m.decodeTrailers(ResponseTrailers, r.ResponseTrailers)
	}
	m.decodeAttributes(in.GetAttributes()[attributesKey].GetFields())
	m.decodeMetadata(in.GetMetadataContext().GetFilterMetadata())
}

func modeOf(m filter.ProcessingMode_BodySendMode) BodyMode {
	switch m {
	case filter.ProcessingMode_NONE:
		return ModeNone
	case filter.ProcessingMode_BUFFERED:
		return ModeBuffered
	case filter.ProcessingMode_BUFFERED_PARTIAL:
		return ModeBufferedPartial
	case filter.ProcessingMode_STREAMED:
		return ModeStreamed
	case filter.ProcessingMode_FULL_DUPLEX_STREAMED:
		return ModeFullDuplex
	}
	return ModeUnknown
}

func (m *Message) decodeHeaders(p Phase, h *extproc.HttpHeaders) {
	m.Phase = p
	m.EndOfStream = h.GetEndOfStream()
	m.appendHeaders(h.GetHeaders())
}

func (m *Message) decodeBody(p Phase, b *extproc.HttpBody) {
	m.Phase = p
	m.EndOfStream = b.GetEndOfStream()
	m.Body = b.GetBody()
}

func (m *Message) decodeTrailers(p Phase, t *extproc.HttpTrailers) {
	m.Phase = p
	m.EndOfStream = true
	m.appendHeaders(t.GetTrailers())
}

func (m *Message) appendHeaders(h *core.HeaderMap) {
	for _, e := range h.GetHeaders() {
		v := e.GetValue()
		if raw := e.GetRawValue(); len(raw) > 0 {
			v = string(raw)
		}
		m.Headers = append(m.Headers, Header{Name: e.GetKey(), Value: v})
	}
}

func (m *Message) decodeAttributes(a map[string]*structpb.Value) {
	if len(a) == 0 {
		return
	}
	m.Attributes = Attributes{
		RequestTime:     a["request.time"].GetStringValue(),
		RequestID:       a["request.id"].GetStringValue(),
		UpstreamAddress: a["upstream.address"].GetStringValue(),
		CodeDetails:     a["response.code_details"].GetStringValue(),
		Flags:           text(a["response.flags"]),
		Attempts:        attempts(a["upstream.request_attempt_count"]),
	}
}

// text is v as text, whether Envoy sent a string or a number.
func text(v *structpb.Value) string {
	if n, ok := v.GetKind().(*structpb.Value_NumberValue); ok {
		return strconv.FormatFloat(n.NumberValue, 'f', -1, 64)
	}
	return v.GetStringValue()
}

// attempts is v as a count, 0 where it is none.
func attempts(v *structpb.Value) int {
	n := v.GetNumberValue()
	if s := v.GetStringValue(); s != "" {
		i, err := strconv.Atoi(s)
		if err != nil {
			return 0
		}
		n = float64(i)
	}
	// The comparison is false for what is not a number too.
	if n >= 1 && n <= maxAttempts {
		return int(n)
	}
	return 0
}

func (m *Message) decodeMetadata(md map[string]*structpb.Struct) {
	if len(md) == 0 {
		return
	}
	m.ServedEndpoint = md[lbNamespace].GetFields()[servedKey].GetStringValue()
	v, ok := md[subsetNamespace].GetFields()[subsetKey]
	if !ok {
		return
	}
	m.HasSubset = true
	switch k := v.GetKind().(type) {
	case *structpb.Value_ListValue:
		for _, e := range k.ListValue.GetValues() {
			m.Subset = appendEndpoints(m.Subset, e.GetStringValue())
		}
	case *structpb.Value_StringValue:
		m.Subset = appendEndpoints(m.Subset, k.StringValue)
	}
}

package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// transport hands out what is in it and keeps what is sent, as it goes over the
// wire.
type transport struct {
	in   []*extproc.ProcessingRequest
	sent []*extproc.ProcessingResponse
	fail error
}

func (t *transport) RecvMsg(m any) error {
	if len(t.in) == 0 {
		return io.EOF
	}
	b, err := proto.Marshal(t.in[0])
	if err != nil {
		return err
	}
	t.in = t.in[1:]
	return m.(*Message).Unmarshal(b)
}

func (t *transport) SendMsg(m any) error {
	if t.fail != nil {
		return t.fail
	}
	begin, body, err := m.(*Reply).Marshal(nil)
	if err != nil {
		return err
	}
	var r extproc.ProcessingResponse
	if err := proto.Unmarshal(append(begin, body...), &r); err != nil {
		return err
	}
	t.sent = append(t.sent, &r)
	return nil
}

// sent is r as it comes over the wire, as the reference writes it too.
func sent(t *testing.T, r *Reply) *extproc.ProcessingResponse {
	t.Helper()
	var tr transport
	if err := NewStream(&tr).Send(r); err != nil {
		t.Fatal(err)
	}
	want, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.sent[0]; !proto.Equal(got, want) {
		t.Errorf("the reply differs from the reference:\ngot  %s\nwant %s", protojson.Format(got), protojson.Format(want))
	}
	return tr.sent[0]
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Reply
		want string // as JSON
	}{
		{"nothing changed", Reply{Phase: ResponseBody}, `{"responseBody":{"response":{}}}`},
		{"request headers", Reply{Phase: RequestHeaders}, `{"requestHeaders":{"response":{}}}`},
		{"request body", Reply{Phase: RequestBody}, `{"requestBody":{"response":{}}}`},
		{"request trailers", Reply{Phase: RequestTrailers}, `{"requestTrailers":{}}`},
		{"response headers", Reply{Phase: ResponseHeaders}, `{"responseHeaders":{"response":{}}}`},
		{"response trailers", Reply{Phase: ResponseTrailers}, `{"responseTrailers":{}}`},
		{
			"headers",
			Reply{Phase: RequestHeaders, Set: []Header{{"a", "1"}}, Remove: []string{"b"}, ClearRoute: true},
			`{"requestHeaders":{"response":{"headerMutation":{"setHeaders":[{"header":{"key":"a","rawValue":"MQ=="},"appendAction":"OVERWRITE_IF_EXISTS_OR_ADD"}],"removeHeaders":["b"]},"clearRouteCache":true}}}`,
		},
		{"removal only", Reply{Phase: RequestHeaders, Remove: []string{"b"}}, `{"requestHeaders":{"response":{"headerMutation":{"removeHeaders":["b"]}}}}`},
		{
			"trailers' headers", Reply{Phase: RequestTrailers, Set: []Header{{"a", "1"}}},
			`{"requestTrailers":{"headerMutation":{"setHeaders":[{"header":{"key":"a","rawValue":"MQ=="},"appendAction":"OVERWRITE_IF_EXISTS_OR_ADD"}]}}}`,
		},
		{"a body replaced", Reply{Phase: RequestBody, HasBody: true, Body: []byte("x")}, `{"requestBody":{"response":{"bodyMutation":{"body":"eA=="}}}}`},
		{"a body emptied", Reply{Phase: RequestBody, HasBody: true}, `{"requestBody":{"response":{"bodyMutation":{"body":""}}}}`},
		{
			"a piece", Reply{Phase: ResponseBody, Streamed: true, Body: []byte("x"), EndOfStream: true},
			`{"responseBody":{"response":{"bodyMutation":{"streamedResponse":{"body":"eA==","endOfStream":true}}}}}`,
		},
		{"an empty piece", Reply{Phase: ResponseBody, Streamed: true}, `{"responseBody":{"response":{"bodyMutation":{"streamedResponse":{}}}}}`},
		{
			"metadata", Reply{Phase: RequestHeaders, Endpoint: "10.0.0.1:8000", Metadata: map[string]string{"pool": "p"}},
			`{"requestHeaders":{"response":{}},"dynamicMetadata":{"envoy.lb":{"x-gateway-destination-endpoint":"10.0.0.1:8000"},"inferspan":{"pool":"p"}}}`,
		},
		{
			"a name that is no UTF-8", Reply{Phase: RequestHeaders, Metadata: map[string]string{"model": "a\xFF"}},
			`{"requestHeaders":{"response":{}},"dynamicMetadata":{"inferspan":{"model":"a` + "\uFFFD" + `"}}}`,
		},
		{
			"our own answer",
			Reply{
				Phase: RequestBody, Metadata: map[string]string{"reason": "r"}, Set: []Header{{"a", "1"}},
				Immediate: &Immediate{Status: 503, Headers: []Header{{"content-type", "application/json"}}, Body: []byte("{}"), Details: "inferspan_r\xFF"},
			},
			`{"immediateResponse":{"status":{"code":"ServiceUnavailable"},"headers":{"setHeaders":[{"header":{"key":"content-type","rawValue":"YXBwbGljYXRpb24vanNvbg=="},"appendAction":"OVERWRITE_IF_EXISTS_OR_ADD"}]},"body":"e30=","details":"inferspan_r` + "\uFFFD" + `"},"dynamicMetadata":{"inferspan":{"reason":"r"}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want extproc.ProcessingResponse
			if err := protojson.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if got := sent(t, &c.in); !proto.Equal(got, &want) {
				t.Errorf("got  %s\nwant %s", protojson.Format(got), protojson.Format(&want))
			}
		})
	}
}

func TestSendFails(t *testing.T) {
	s := NewStream(&transport{fail: io.ErrClosedPipe})
	if err := s.Send(&Reply{Phase: RequestBody}); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "request_body") {
		t.Errorf("got %v", err)
	}
	s = NewStream(&transport{})
	for _, p := range []Phase{0, ResponseTrailers + 1} {
		if err := s.Send(&Reply{Phase: p}); err == nil || !strings.Contains(err.Error(), "no phase") {
			t.Errorf("phase %d: got %v", p, err)
		}
	}
}

// What changes something says so, whichever field it is in.
func TestUnchanging(t *testing.T) {
	if r := (&Reply{Phase: ResponseBody, EndOfStream: true, Body: []byte("x")}); !r.Unchanging() {
		t.Errorf("%+v changes something", r)
	}
	for _, r := range []Reply{
		{Set: []Header{{"a", "b"}}}, {Remove: []string{"a"}}, {HasBody: true}, {Streamed: true}, {ClearRoute: true},
		{Endpoint: "e"}, {Metadata: map[string]string{"a": "b"}}, {Immediate: &Immediate{}},
	} {
		if r.Unchanging() {
			t.Errorf("%+v changes nothing", r)
		}
	}
}

// A body, which can be megabytes, is handed on as it is.
func TestMarshalCopiesNoBody(t *testing.T) {
	body := []byte("body")
	for _, r := range []*Reply{
		{Phase: RequestBody, HasBody: true, Body: body, Set: []Header{{"a", "b"}}, Endpoint: "e", ClearRoute: true},
		{Phase: ResponseBody, Streamed: true, EndOfStream: true, Body: body},
		{Phase: RequestBody, Immediate: &Immediate{Status: 503, Body: body, Details: "d"}},
	} {
		_, tail, err := r.Marshal(nil)
		if err != nil || len(tail) != len(body) || &tail[0] != &body[0] {
			t.Errorf("%+v: the body is %q, %v", r, tail, err)
		}
	}
}

// FuzzEncode makes replies of any text: each comes over the wire as the reference
// writes it.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(1), "x-a", "1", "x-b", []byte("body"), true, false, "10.0.0.1:8000", "m", 0)
	f.Add(uint8(5), "", "", "", []byte{}, false, true, "", "\xFF", 503)
	f.Fuzz(func(t *testing.T, phase uint8, name, value, remove string, body []byte, hasBody, streamed bool, endpoint, model string, status int) {
		r := &Reply{
			Phase: Phase(phase%6) + 1, Set: []Header{{strings.ToValidUTF8(name, ""), value}}, Remove: []string{strings.ToValidUTF8(remove, "")},
			HasBody: hasBody, Streamed: streamed, Body: body, Endpoint: endpoint, Metadata: map[string]string{"model": model},
		}
		if status != 0 {
			r.Immediate = &Immediate{Status: status & 0x3FF, Body: body, Headers: r.Set, Details: value}
		}
		sent(t, r)
	})
}

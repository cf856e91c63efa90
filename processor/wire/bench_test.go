package wire

import (
	"fmt"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// BenchmarkUnmarshal compares what a message costs to read, by its bytes and by
// generated code.
func BenchmarkUnmarshal(b *testing.B) {
	frame, err := proto.Marshal(&extproc.ProcessingRequest{
		MetadataContext: &core.Metadata{},
		Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: &extproc.HttpBody{Body: []byte(
			`data: {"id":"chatcmpl-9a8b7c6d","object":"chat.completion.chunk","created":1764583200,"model":"llama","choices":[{"index":0,"delta":{"content":" slow"},"logprobs":null,"finish_reason":null}]}` + "\n\n",
		)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   []byte
	}{{"frame", frame}, {"headers", seeds(b)[2]}} {
		b.Run(c.name+"/by=bytes", func(b *testing.B) {
			b.ReportAllocs()
			var m Message
			for b.Loop() {
				m.release()
				if err := m.Unmarshal(c.in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/by=generated", func(b *testing.B) {
			b.ReportAllocs()
			var m Message
			for b.Loop() {
				m.release()
				var in extproc.ProcessingRequest
				if err := proto.Unmarshal(c.in, &in); err != nil {
					b.Fatal(err)
				}
				decode(&in, &m)
			}
		})
	}
}

// BenchmarkUnmarshalSubset reads a frame with the hint of a large pool, which
// comes with every message.
func BenchmarkUnmarshalSubset(b *testing.B) {
	addrs := make([]any, 1000)
	for i := range addrs {
		addrs[i] = fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250)
	}
	hint, err := structpb.NewStruct(map[string]any{subsetKey: addrs})
	if err != nil {
		b.Fatal(err)
	}
	in, err := proto.Marshal(&extproc.ProcessingRequest{
		MetadataContext: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{subsetNamespace: hint}},
		Request:         &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: []byte("{}")}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var m Message
	for b.Loop() {
		m.release()
		if err := m.Unmarshal(in); err != nil || len(m.Subset) != len(addrs) {
			b.Fatalf("%d endpoints, %v", len(m.Subset), err)
		}
	}
}

// BenchmarkMarshal compares what a reply costs to write.
func BenchmarkMarshal(b *testing.B) {
	for _, c := range []struct {
		name string
		r    *Reply
	}{
		{"unchanging", &Reply{Phase: ResponseBody}},
		{"decision", &Reply{
			Phase: RequestBody, Set: []Header{{"x-gateway-destination-endpoint", "10.0.0.1:8000"}, {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
			Remove: []string{"x-inferspan-pool"}, Endpoint: "10.0.0.1:8000", Metadata: map[string]string{"pool": "default", "model": "llama"},
		}},
	} {
		b.Run(c.name+"/by=bytes", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.r.Marshal(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/by=generated", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, err := encode(c.r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := proto.Marshal(out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

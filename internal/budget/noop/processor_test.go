package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// serve runs the processor until the test ends.
func serve(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listen := "unix:" + filepath.Join(t.TempDir(), "s")
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(said, 1), make(chan error, 1)
	go func() { ended <- run(ctx, listen, listening) }()
	select {
	case line := <-listening:
		if !strings.HasPrefix(line, "listen ") {
			t.Errorf("it says %q", line)
		}
	case err := <-ended:
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// said takes what is written.
type said chan string

func (s said) Write(b []byte) (int, error) { s <- string(b); return len(b), nil }

func body(n int, end bool) *extproc.HttpBody {
	return &extproc.HttpBody{Body: []byte(strings.Repeat("x", n)), EndOfStream: end}
}

// Every message is answered, in its phase.
func TestAnswers(t *testing.T) {
	s, err := extproc.NewExternalProcessorClient(serve(t)).Process(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []*extproc.ProcessingRequest{
		{Request: &extproc.ProcessingRequest_RequestHeaders{}},
		{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: body(10, true)}},
		{Request: &extproc.ProcessingRequest_RequestTrailers{}},
		{Request: &extproc.ProcessingRequest_ResponseHeaders{}},
		{Request: &extproc.ProcessingRequest_ResponseBody{ResponseBody: body(10, true)}},
		{Request: &extproc.ProcessingRequest_ResponseTrailers{}},
	} {
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
		out, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := in.ProtoReflect().WhichOneof(in.ProtoReflect().Descriptor().Oneofs().ByName("request")).Name()
		got := out.ProtoReflect().WhichOneof(out.ProtoReflect().Descriptor().Oneofs().ByName("response")).Name()
		if got != want {
			t.Errorf("%s is answered by %s", want, got)
		}
	}
}

// What goes through it goes through whole, in pieces that Envoy takes.
func TestEchoes(t *testing.T) {
	s, err := extproc.NewExternalProcessorClient(serve(t)).Process(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sent := []int{0, 1, maxPiece, 3*maxPiece + 1}
	for i, n := range sent {
		in := &extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: body(n, i == len(sent)-1)}}
		if i == 0 {
			in.ProtocolConfig = &extproc.ProtocolConfiguration{RequestBodyMode: filter.ProcessingMode_FULL_DUPLEX_STREAMED}
		}
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	left, pieces := 4*maxPiece+2, 0
	for end := false; !end; pieces++ {
		out, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		p := out.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		if p == nil || len(p.GetBody()) > maxPiece {
			t.Fatalf("a piece of %d bytes, or none: %v", len(p.GetBody()), p == nil)
		}
		left -= len(p.GetBody())
		end = p.GetEndOfStream()
	}
	if left != 0 || pieces != 7 {
		t.Errorf("%d pieces, %d bytes missing", pieces, left)
	}
}

func TestTakesAccessLogs(t *testing.T) {
	s, err := accesslog.NewAccessLogServiceClient(serve(t)).StreamAccessLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&accesslog.StreamAccessLogsMessage{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"errors"
	"io"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// maxPiece is the number of body bytes that a FULL_DUPLEX_STREAMED reply has at
// most: Envoy may refuse messages of more than 64 KiB.
const maxPiece = 62_000

type processor struct {
	extproc.UnimplementedExternalProcessorServer
}

// Process answers the messages of one stream.
func (processor) Process(s extproc.ExternalProcessor_ProcessServer) error {
	var echoRequest, echoResponse bool
	for {
		in, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c := in.GetProtocolConfig(); c != nil {
			echoRequest = c.GetRequestBodyMode() == filter.ProcessingMode_FULL_DUPLEX_STREAMED
			echoResponse = c.GetResponseBodyMode() == filter.ProcessingMode_FULL_DUPLEX_STREAMED
		}
		switch r := in.GetRequest().(type) {
		case *extproc.ProcessingRequest_RequestHeaders:
			err = s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{}}})
		case *extproc.ProcessingRequest_ResponseHeaders:
			err = s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}}})
		case *extproc.ProcessingRequest_RequestBody:
			err = bodies(r.RequestBody, echoRequest, func(b *extproc.BodyResponse) error {
				return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: b}})
			})
		case *extproc.ProcessingRequest_ResponseBody:
			err = bodies(r.ResponseBody, echoResponse, func(b *extproc.BodyResponse) error {
				return s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: b}})
			})
		case *extproc.ProcessingRequest_RequestTrailers:
			err = s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}}})
		case *extproc.ProcessingRequest_ResponseTrailers:
			err = s.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}}})
		}
		if err != nil {
			return err
		}
	}
}

// bodies answers one body message: with nothing, or where the bytes go through
// the processor with all of them.
func bodies(in *extproc.HttpBody, echo bool, send func(*extproc.BodyResponse) error) error {
	if !echo {
		return send(&extproc.BodyResponse{})
	}
	for body := in.GetBody(); ; body = body[maxPiece:] {
		piece := &extproc.StreamedBodyResponse{Body: body, EndOfStream: in.GetEndOfStream()}
		last := len(body) <= maxPiece
		if !last {
			piece.Body, piece.EndOfStream = body[:maxPiece], false
		}
		err := send(&extproc.BodyResponse{Response: &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
			Mutation: &extproc.BodyMutation_StreamedResponse{StreamedResponse: piece},
		}}})
		if err != nil || last {
			return err
		}
	}
}

type accessLog struct {
	accesslog.UnimplementedAccessLogServiceServer
}

// StreamAccessLogs lets entries go.
func (accessLog) StreamAccessLogs(s accesslog.AccessLogService_StreamAccessLogsServer) error {
	for {
		if _, err := s.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return s.SendAndClose(&accesslog.StreamAccessLogsResponse{})
			}
			return err
		}
	}
}

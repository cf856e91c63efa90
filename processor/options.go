package processor

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// maxMessage lets a BUFFERED body of tens of megabytes come in one message.
	maxMessage = 64 << 20
	// streamWindow holds some of Envoy's largest frames, connWindow those of
	// several streams: one of them that we read late must not stop the others.
	streamWindow = 1 << 20
	connWindow   = 4 << 20
	// minPing is half of the interval at which deploy/'s Envoy pings.
	minPing = 5 * time.Second
	// connAge is after how long Envoy is asked to open a new connection, by which
	// replicas that came later get their share. Streams finish on the old one,
	// however long they take.
	connAge = 5 * time.Minute
	// A peer that vanished without a word is found by pings.
	pingAfter, pingTimeout = time.Minute, 20 * time.Second
)

// ServerOptions are the gRPC server's options that Envoy needs: pings as often
// as it sends them, bodies in one message, and room for frames to come while
// others are worked on. A Service needs the codec among them; other services on
// the same server are served as without it.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             minPing,
			PermitWithoutStream: true,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: connAge,
			Time:             pingAfter,
			Timeout:          pingTimeout,
		}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
	}
}

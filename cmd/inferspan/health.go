package main

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/inferspan/inferspan/processor/wire"
)

// The names that the endpoint picker protocol has beside the service's own.
const (
	livenessName  = "liveness"
	readinessName = "readiness"
)

// health answers gRPC health checks: the process lives as long as it answers,
// and is ready as setReady says. It ends its watchers by end, since a server
// that stops gracefully waits for every call.
type health struct {
	*grpchealth.Server

	ended chan struct{}
	end   func()
}

func newHealth() *health {
	h := &health{Server: grpchealth.NewServer(), ended: make(chan struct{})}
	h.end = sync.OnceFunc(func() { close(h.ended) })
	h.SetServingStatus(livenessName, grpc_health_v1.HealthCheckResponse_SERVING)
	h.setReady(false)
	return h
}

// setReady sets what all names but liveness answer, the empty one included.
func (h *health) setReady(ready bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, name := range []string{"", readinessName, wire.ServiceName} {
		h.SetServingStatus(name, status)
	}
}

// Watch is grpc-go's, until end.
func (h *health) Watch(req *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-h.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.Server.Watch(req, watcher{ServerStreamingServer: stream, ctx: ctx})
}

// watcher is a stream with a context of its own.
type watcher struct {
	grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]

	ctx context.Context //nolint:containedctx // a gRPC stream carries its context
}

func (w watcher) Context() context.Context { return w.ctx }

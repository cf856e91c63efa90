// Command noop is the stock external processor that Inferspan's cost is measured
// against: grpc-go and generated code as they come. It answers every message
// and looks at nothing but whether it has to hand the bytes back.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "ip:port or unix:PATH")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "noop:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes where it listens, as `listen ADDRESS`.
func run(ctx context.Context, listen string, out io.Writer) error {
	network, address := "tcp", listen
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		network, address = "unix", path
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	if _, err := fmt.Fprintln(out, "listen", ln.Addr()); err != nil {
		return fmt.Errorf("say where it listens: %w", err)
	}
	g := grpc.NewServer()
	extproc.RegisterExternalProcessorServer(g, processor{})
	accesslog.RegisterAccessLogServiceServer(g, accessLog{})
	h := health.NewServer()
	h.SetServingStatus(extproc.ExternalProcessor_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(g, h)
	defer context.AfterFunc(ctx, g.Stop)()
	return g.Serve(ln)
}

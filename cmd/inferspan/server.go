package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/inferspan/inferspan/internal/admin"
	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/telemetry"
)

// What the end may take beyond the drain timeout, each on its own.
const (
	hangUpTimeout = 5 * time.Second // to close connections without streams
	flushTimeout  = 5 * time.Second // to bring out the last telemetry
	adminTimeout  = time.Second     // to finish admin requests
)

// server is all that `inferspan serve` runs.
type server struct {
	config        config.Config
	log           *slog.Logger
	listener      net.Listener
	adminListener net.Listener

	telemetry *telemetry.Telemetry
	service   *processor.Service
	grpc      *grpc.Server
	health    *health
	admin     *admin.Server
}

// newServer builds a server and opens its addresses; run serves on them.
func newServer(ctx context.Context, c config.Config, version string, log *slog.Logger) (*server, error) {
	options := processor.ServerOptions()
	if c.TLS != nil {
		t, err := c.TLS.ServerConfig()
		if err != nil {
			return nil, fmt.Errorf("set up TLS: %w", err)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(t)))
	}
	router, err := route.New(routes(c))
	if err != nil {
		return nil, fmt.Errorf("set up routing: %w", err)
	}
	s := &server{config: c, log: log, health: newHealth(), grpc: grpc.NewServer(options...)}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	// Telemetry shows the service's live exchanges, and the service needs
	// telemetry first.
	var service atomic.Pointer[processor.Service]
	live := func() []meter.Live {
		if s := service.Load(); s != nil {
			return s.Live()
		}
		return nil
	}
	s.telemetry, err = telemetry.New(ctx, telemetrySettings(c, version, log, live))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up telemetry: %w", err), s.close())
	}
	records := journal.New(int(c.Journal.MaxBytes))
	s.service = processor.New(processorSettings(c, log, router, s.telemetry, records))
	service.Store(s.service)
	s.service.Register(s.grpc)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.admin = admin.New(admin.Config{
		Metrics:  s.telemetry.MetricsHandler(),
		Requests: records.Handler(),
		Logger:   log,
	})
	return s, nil
}

func (s *server) open(ctx context.Context) (err error) {
	if s.listener, err = listen(ctx, "listen", s.config.Listen); err != nil {
		return err
	}
	if s.adminListener, err = listen(ctx, "admin", config.Listen{Network: "tcp", Address: string(s.config.Admin)}); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	return nil
}

func (s *server) close() error {
	return errors.Join(s.listener.Close(), s.adminListener.Close())
}

// run serves until ctx ends, then drains. Its error is nil unless serving
// failed: what the end could not bring out is logged.
func (s *server) run(ctx context.Context) error {
	ext, adm := make(chan error, 1), make(chan error, 1)
	go func() { ext <- s.grpc.Serve(s.listener) }()
	go func() { adm <- s.admin.Serve(s.adminListener) }()
	s.setReady(true)
	s.log.Info("ready", "listen", address(s.listener), "admin", address(s.adminListener))

	var failure error
	select {
	case <-ctx.Done():
	case err := <-ext:
		ext <- err
	case err := <-adm:
		adm <- err
	}
	s.setReady(false)
	s.log.Info("drain", "exchanges", len(s.service.Live()), "timeout", s.config.DrainTimeout.String())
	ctx = context.WithoutCancel(ctx)
	s.drain(ctx)
	s.flush(ctx)
	if err := <-ext; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		failure = fmt.Errorf("serve ext_proc on %s: %w", address(s.listener), err)
	}
	return errors.Join(failure, <-adm)
}

func (s *server) setReady(ready bool) {
	s.health.setReady(ready)
	s.admin.SetReady(ready)
}

// drain lets streams finish for as long as the configuration says, then ends
// those that Envoy can go on without, and returns when none is left. New ones
// are taken all the while: Envoy sends them until its health check has noticed,
// and if this is its only processor, they are better served than passed by.
func (s *server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainTimeout)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		s.grpc.GracefulStop()
	}()
	s.service.Drain(ctx)
	cancel()
	s.health.end()
	select {
	case <-stopped:
	case <-time.After(hangUpTimeout):
		s.grpc.Stop()
		<-stopped
	}
}

// flush brings out the telemetry that is left. The admin side serves until it
// is out, so that a last scrape sees the last exchange.
func (s *server) flush(ctx context.Context) {
	flushCtx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := s.telemetry.Shutdown(flushCtx); err != nil {
		s.log.Warn("telemetry was lost at the end", "error", err)
	}
	adminCtx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if err := s.admin.Shutdown(adminCtx); err != nil {
		s.log.Warn("admin requests were cut off", "error", err)
	}
}

// address is where l listens, as the configuration would have it.
func address(l net.Listener) string {
	a := l.Addr()
	return config.Listen{Network: a.Network(), Address: a.String()}.String()
}

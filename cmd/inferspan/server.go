package main

import (
	"context"
	"crypto/tls"
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
	"github.com/inferspan/inferspan/internal/recording"
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
	recordTimeout = time.Second     // of that, to write the last recordings
	adminTimeout  = time.Second     // to finish admin requests
)

// server is all that `inferspan serve` runs.
type server struct {
	config        config.Config // as it was at the start
	log           *slog.Logger
	listener      net.Listener
	adminListener net.Listener
	// tls and adminTLS are what the two show; nil: plain text.
	tls, adminTLS *certificates
	// drainTimeout is the configuration's, as it is now.
	drainTimeout atomic.Int64

	router    *route.Router
	discovery discovery
	asker     *asker
	telemetry *telemetry.Telemetry
	journal   *journal.Journal
	service   *processor.Service
	grpc      *grpc.Server
	health    *health
	admin     *admin.Server
	recorder  *recording.Recorder // nil: nothing is recorded
}

// newServer builds a server and opens its addresses; run serves on them.
func newServer(ctx context.Context, c config.Config, version string, log *slog.Logger) (*server, error) {
	s := &server{config: c, log: log, health: newHealth()}
	s.drainTimeout.Store(int64(c.DrainTimeout))
	options, err := s.secure(processor.ServerOptions())
	if err != nil {
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	s.grpc = grpc.NewServer(options...)
	picking := routes(c)
	picking.Ejected = logEjections(log)
	if s.router, err = route.New(picking); err != nil {
		return nil, fmt.Errorf("set up routing: %w", err)
	}
	s.discovery = newDiscovery(s.router, log)
	if err := s.discovery.apply(c, s.router); err != nil {
		return nil, fmt.Errorf("set up discovery: %w", err)
	}
	failed := func(pool, endpoint, reason string) { s.telemetry.ScrapeFailed(pool, endpoint, reason) }
	s.asker = newAsker(c.Pools, s.router, failed, log)
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	count := func(event string) { s.telemetry.Count(event) } // not before there are exchanges
	if s.recorder, err = newRecorder(c.Record, count, log); err != nil {
		return nil, errors.Join(err, s.close())
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
	observed := telemetrySettings(c, version, log, live)
	observed.Endpoints = func() []telemetry.Endpoint { return endpointStates(s.router.Endpoints()) }
	observed.Discovery = s.discovery.shown
	observed.ClockOffset = func() (time.Duration, bool) {
		if s := service.Load(); s != nil {
			return s.ClockOffset()
		}
		return 0, false
	}
	s.telemetry, err = telemetry.New(ctx, observed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up telemetry: %w", err), s.endRecorder(ctx), s.close())
	}
	s.journal = journal.New(int(c.Journal.MaxBytes))
	settings := processorSettings(c, log, s.router, s.telemetry, sinks{s.journal, telemetry.NewFailures(log)})
	settings.Record = recordWith(s.recorder)
	s.service = processor.New(settings)
	service.Store(s.service)
	s.service.Register(s.grpc)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.admin = admin.New(admin.Config{
		Metrics:  s.telemetry.MetricsHandler(),
		Requests: s.journal.Handler(),
		Missing:  s.discovery.missing,
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

// secure reads the certificates of both servers and returns options with those
// of the first.
func (s *server) secure(options []grpc.ServerOption) (_ []grpc.ServerOption, err error) {
	if c := s.config.TLS; c != nil {
		if s.tls, err = newCertificates("tls", *c, "h2"); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls.server())))
	}
	if c := s.config.AdminTLS; c != nil {
		if s.adminTLS, err = newCertificates("admin_tls", *c, "http/1.1"); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// apply takes from c what can change while s runs. It has no error of what
// config.Load has taken: whoever checks here checks that again.
func (s *server) apply(c config.Config) error {
	if err := s.discovery.apply(c, s.router); err != nil {
		return fmt.Errorf("set up routing: %w", err)
	}
	if err := s.telemetry.Apply(telemetrySettings(c, "", s.log, nil)); err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	s.service.Apply(processorSettings(c, s.log, s.router, s.telemetry, nil))
	s.asker.apply(c.Pools)
	s.journal.Resize(int(c.Journal.MaxBytes))
	s.drainTimeout.Store(int64(c.DrainTimeout))
	return nil
}

func (s *server) close() error {
	return errors.Join(s.listener.Close(), s.adminListener.Close())
}

// run serves until ctx ends, then drains; beside it is what else runs until
// then. Its error is nil unless serving failed: what the end could not bring
// out is logged.
func (s *server) run(ctx context.Context, beside func(context.Context)) error {
	adminListener := s.adminListener
	if s.adminTLS != nil {
		adminListener = tls.NewListener(adminListener, s.adminTLS.server())
	}
	ext, adm := make(chan error, 1), make(chan error, 1)
	go func() { ext <- s.grpc.Serve(s.listener) }()
	go func() { adm <- s.admin.Serve(adminListener) }()
	endBeside := background(ctx, beside)
	// Requests are routed for as long as streams are waited for.
	beyond := context.WithoutCancel(ctx)
	endAsking, endDiscovery := background(beyond, s.asker.scraper.Run), background(beyond, s.discovery.Run)

	s.serving(ctx, ext, adm)
	endBeside()
	s.setReady(false)
	s.log.Info("drain", "exchanges", len(s.service.Live()), "timeout", time.Duration(s.drainTimeout.Load()).String())
	s.drain(beyond)
	endAsking()
	endDiscovery()
	s.flush(beyond)
	var failure error
	if err := <-ext; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		failure = fmt.Errorf("serve ext_proc on %s: %w", address(s.listener), err)
	}
	return errors.Join(failure, <-adm)
}

// background has run at work until end is called, which returns when it has ended.
func background(ctx context.Context, run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// serving is ready as soon as the endpoints of all pools are known, and returns
// when ctx ends or a server has failed, which it leaves to be read.
func (s *server) serving(ctx context.Context, ext, adm chan error) {
	if missing := s.discovery.missing(); missing != "" {
		s.log.Info("wait for endpoints", "missing", missing, "listen", address(s.listener), "admin", address(s.adminListener))
	}
	for synced := s.discovery.Synced(); ; {
		select {
		case <-synced:
			synced = nil
			s.setReady(true)
			s.log.Info("ready", "listen", address(s.listener), "admin", address(s.adminListener))
		case <-ctx.Done():
			return
		case err := <-ext:
			ext <- err
			return
		case err := <-adm:
			adm <- err
			return
		}
	}
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
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.drainTimeout.Load()))
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
	// What it could not write is counted before telemetry is out.
	if err := s.endRecorder(flushCtx); err != nil {
		s.log.Warn("recordings were lost at the end", "error", err)
	}
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

package testkit

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	_ "google.golang.org/grpc/encoding/gzip" // a Sink reads what the collector compressed
)

// Collector is a running OpenTelemetry Collector.
type Collector struct {
	*Process
	// Addr is where it takes OTLP over gRPC; SelfAddr is where its page of
	// metrics about itself is.
	Addr, SelfAddr string
}

// CollectorOptions tune a StartCollector.
type CollectorOptions struct {
	// Config is the path of a configuration of deploy/collector.
	Config string
	// Dir takes what waits for delivery.
	Dir string
	// Traces is the ip:port of an OTLP receiver over gRPC, Metrics the URL of
	// one over HTTP, with its path.
	Traces, Metrics string
	// Env sets what else of the configuration can be set, as NAME=value.
	Env []string
}

// StartCollector starts the collector on free ports and returns when it is
// ready.
func StartCollector(ctx context.Context, o CollectorOptions) (*Collector, error) {
	bin, err := Tool("collector")
	if err != nil {
		return nil, err
	}
	c := &Collector{}
	var health string
	for _, addr := range []*string{&c.Addr, &c.SelfAddr, &health} {
		if *addr, err = FreeAddr(); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(c.SelfAddr)
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	c.Process, err = StartProcess("the collector of "+filepath.Base(o.Config), bin, []string{"--config", o.Config}, append([]string{
		"OTLP_GRPC_LISTEN=" + c.Addr,
		"TRACES_ENDPOINT=" + o.Traces,
		"METRICS_ENDPOINT=" + o.Metrics,
		"QUEUE_DIRECTORY=" + o.Dir,
		"HEALTH_LISTEN=" + health,
		"SELF_METRICS_HOST=" + host,
		"SELF_METRICS_PORT=" + port,
	}, o.Env...))
	if err != nil {
		return nil, err
	}
	if err := c.waitReady(ctx, "http://"+health+"/"); err != nil {
		return nil, err
	}
	return c, nil
}

// SelfMetrics returns the collector's metrics about itself.
func (c *Collector) SelfMetrics(ctx context.Context) ([]byte, error) {
	return Get(ctx, "http://"+c.SelfAddr+"/metrics")
}

// waitReady returns when a GET of url gives 200, and kills the process when it
// does not in time, or has ended.
func (p *Process) waitReady(ctx context.Context, url string) error {
	err := Poll(ctx, func(ctx context.Context) error {
		select {
		case <-p.Done():
			return nil // not ready, but nothing to wait for
		default:
		}
		_, err := Get(ctx, url)
		return err
	})
	if err != nil {
		p.Kill()
		return fmt.Errorf("starting %s: %w\n%s", p.name, err, p.Log())
	}
	select {
	case <-p.Done():
		return fmt.Errorf("%s ended at its start: %w\n%s", p.name, p.err, p.Log())
	default:
		return nil
	}
}

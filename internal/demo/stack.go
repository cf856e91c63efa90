package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

const (
	// startTime is how long a program may take to be ready, on a busy machine.
	startTime = 30 * time.Second
	// stopTime is how long all of them together may take to end; Inferspan
	// takes most of it where it exports to nobody.
	stopTime = 20 * time.Second
)

// stack is everything that runs: the fleet, Inferspan, Envoy.
type stack struct {
	dir       string
	plays     []play
	fleet     []*server
	binary    string // Inferspan's, for the lookup commands
	inferspan *testkit.Inferspan
	envoy     *testkit.Envoy
	listener  string // Envoy's ip:port for clients
}

// startStack starts what the demo needs, or nothing.
func startStack(ctx context.Context, o options, out io.Writer) (_ *stack, err error) {
	s := &stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	// The printed commands are pasted anywhere.
	if s.binary, err = filepath.Abs(o.inferspan); err != nil {
		return nil, fmt.Errorf("find Inferspan's binary: %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "inferspan-demo-"); err != nil {
		return nil, fmt.Errorf("make a directory for the demo's files: %w", err)
	}
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, err
	}
	if s.plays, err = readPlays(filepath.Join(root, "internal", "testkit", "testdata", "streams")); err != nil {
		return nil, err
	}
	if err := say(out, "starting three stand-in vLLM servers, Inferspan and Envoy\n"); err != nil {
		return nil, err
	}
	if s.fleet, err = startFleet(s.plays); err != nil {
		return nil, err
	}
	for _, v := range s.fleet {
		if err := say(out, "stand-in vLLM  %-16s plays its recordings at %g times the speed\n", v.Addr(), v.speed); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.startInferspan(ctx); err != nil {
		return nil, err
	}
	if err := say(out, "Inferspan      %-16s its metrics and API: %s\n", s.inferspan.Listen, s.adminURL()); err != nil {
		return nil, err
	}
	if err := s.startEnvoy(ctx, o.envoy, filepath.Join(root, "deploy", "envoy", "inline.yaml")); err != nil {
		return nil, err
	}
	if err := say(out, "Envoy          %-16s in front of all, by deploy/envoy/inline.yaml\n", s.listener); err != nil {
		return nil, err
	}
	to := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if to == "" {
		to = "nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT for spans and metrics by OTLP"
	}
	if err := say(out, "exporting to   %s\n\n"+
		"TTFT and TPOT: time to first token, and per output token. TOKENS: prompt/output, ~ estimated. -: not known\n", to); err != nil {
		return nil, err
	}
	return s, nil
}

func say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (s *stack) startInferspan(ctx context.Context) (err error) {
	var endpoints []string
	for _, v := range s.fleet {
		endpoints = append(endpoints, v.Addr())
	}
	s.inferspan, err = testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: s.binary,
		Dir:    s.dir,
		Config: fmt.Sprintf(`pools:
  - name: default
    endpoints: [%s]
models:
  - name: assistant
    targets: [{pool: default, model: tiny}]
`, strings.Join(endpoints, ", ")),
	})
	return err
}

// startEnvoy starts the binary bin with a configuration like template.
func (s *stack) startEnvoy(ctx context.Context, bin, template string) error {
	tmpl, err := os.ReadFile(template)
	if err != nil {
		return fmt.Errorf("read Envoy's configuration: %w", err)
	}
	config, err := renderEnvoy(string(tmpl), s.inferspan.Listen, s.fleet)
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil { //nolint:gosec // the path is of a directory of our own
		return fmt.Errorf("write Envoy's configuration: %w", err)
	}
	if err := os.Setenv("INFERSPAN_ENVOY", bin); err != nil {
		return fmt.Errorf("name Envoy's binary: %w", err)
	}
	if s.envoy, err = testkit.StartEnvoy(ctx, file, s.dir); err != nil {
		return err
	}
	s.listener, err = s.envoy.ListenerAddr(ctx, "inference")
	return err
}

// renderEnvoy is the delivered configuration with the demo's addresses. It
// knows two servers; the others stand after the second, as that one does.
func renderEnvoy(config, processor string, fleet []*server) (string, error) {
	config, err := testkit.RenderEnvoy(config, testkit.EnvoyAddrs{
		Processor: processor,
		VLLM:      [2]string{fleet[0].Addr(), fleet[1].Addr()},
	})
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(fleet[1].Addr())
	if err != nil {
		return "", fmt.Errorf("render Envoy's configuration: %w", err)
	}
	at := strings.Index(config, "port_value: "+port+"}")
	begin := strings.LastIndexByte(config[:at], '\n') + 1
	end := begin + strings.IndexByte(config[begin:], '\n') + 1
	line := config[begin:end]
	for _, v := range fleet[2:] {
		_, p, err := net.SplitHostPort(v.Addr())
		if err != nil {
			return "", fmt.Errorf("render Envoy's configuration: %w", err)
		}
		config = config[:end] + strings.Replace(line, port, p, 1) + config[end:]
	}
	return config, nil
}

// adminURL is where Inferspan's API is.
func (s *stack) adminURL() string { return "http://" + s.inferspan.Admin }

// stop ends what was started, the traffic's way down: Envoy first, so that
// Inferspan has nothing left to wait for.
func (s *stack) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	if s.envoy != nil {
		errs = append(errs, s.envoy.Stop(ctx))
	}
	if s.inferspan != nil {
		errs = append(errs, s.inferspan.Stop(ctx))
	}
	for _, v := range s.fleet {
		errs = append(errs, v.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// failed says whether a program that should run has ended.
func (s *stack) failed() error {
	switch {
	case ended(s.inferspan.Process):
		return fmt.Errorf("the program Inferspan ended; it wrote:\n%s", s.inferspan.Log())
	case ended(s.envoy.Process):
		return fmt.Errorf("the program Envoy ended; it wrote:\n%s", s.envoy.Log())
	}
	return nil
}

func ended(p *testkit.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

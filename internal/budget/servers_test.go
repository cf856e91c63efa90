package budget

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/inferspan/inferspan/internal/testkit"
)

// patience bounds every wait for something that should happen soon.
const patience = 60 * time.Second

// server is a program under measurement.
type server struct {
	*testkit.Process
	driver driver
}

// startNoop starts the stock processor.
func startNoop(b *testing.B, env ...string) server {
	b.Helper()
	dir := b.TempDir()
	listen := "unix:" + filepath.Join(dir, "s")
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	p, _, err := testkit.StartNoop(ctx, dir, listen, env...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	return server{p, dial(b, listen)}
}

// everything is a configuration with two pools, a renamed model and an SLO.
const everything = `
pools:
  - name: default
    endpoints: [127.0.0.1:8001, 127.0.0.1:8002]
  - name: canary
    endpoints: [127.0.0.1:8003]
models:
  - name: llama
    targets: [{pool: default, weight: 90}, {pool: canary, weight: 10}]
slo:
  - {name: chat, match: {operation: chat}, ttft: 2s, tpot: 100ms, target: 0.99}
`

// startInferspan starts Inferspan with routing, metrics and the journal; where it
// exports, its spans and metrics go over OTLP too.
func startInferspan(b *testing.B, exports bool, env ...string) server {
	b.Helper()
	dir := b.TempDir()
	bin, err := testkit.BuildInferspan(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if exports {
		env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+startSink(b), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	}
	listen := "unix:" + filepath.Join(dir, "s")
	i, err := testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: bin, Dir: dir, Listen: listen, Config: everything, Env: env,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(i.Kill)
	return server{i.Process, dial(b, listen)}
}

// startSink starts a receiver of OTLP that lets all go, and returns its address.
func startSink(b *testing.B) string {
	b.Helper()
	ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	g := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(nil); err != nil {
			return err
		}
		return s.SendMsg([]byte{}) // an empty answer accepts all
	}))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(ln) // only Stop ends it
	}()
	b.Cleanup(func() { g.Stop(); <-served })
	return ln.Addr().String()
}

// cpu is the processor time that the program has used, in the kernel too.
func (s server) cpu(b *testing.B) time.Duration {
	b.Helper()
	// The clock of another process, as clock_getcpuclockid(3) makes it.
	clock := int32(^s.PID())<<3 | 2
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		b.Fatalf("reading the processor time of %d: %v", s.PID(), err)
	}
	return time.Duration(t.Nano())
}

// memory is what the program holds in memory and no file backs, in bytes.
func (s server) memory(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		b.Fatal(err)
	}
	_, after, ok := strings.Cut(string(status), "RssAnon:")
	kb, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseInt(kb, 10, 64)
	if !ok || err != nil {
		b.Fatalf("no RssAnon in kB in %s", status)
	}
	return n << 10
}

//go:build unix

package telemetry

import (
	"context"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/inferspan/inferspan/processor/meter"
)

// BenchmarkPipeline is what an exchange costs from its record to a collector's
// answer, over OTLP with gRPC: metrics, span, export. Records come as fast as they
// go out, and none may be lost. CPU is the whole process's, with the receiving of a
// collector that reads nothing in it.
func BenchmarkPipeline(b *testing.B) {
	for name, r := range map[string]*meter.Record{"4tokens": richRecord(), "1000tokens": thousandTokens(), "1000tokens-stalled": stalledRecord()} {
		for _, compression := range []string{"none", "gzip"} {
			b.Run(name+"/"+compression, func(b *testing.B) { benchmarkPipeline(b, r, compression) })
		}
	}
}

func benchmarkPipeline(b *testing.B, r *meter.Record, compression string) {
	b.Helper()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", discardOTLP(b))
	b.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
	c := quiet()
	c.Getenv = nil
	tel, err := New(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	const room = queueBytes / 2
	begun, n := cpu(b), 0
	b.ReportAllocs()
	for b.Loop() {
		tel.End(r)
		if n++; n%64 == 0 {
			for tel.intake.taken()+tel.export.queue.taken() > room {
				<-time.After(100 * time.Microsecond)
			}
		}
	}
	if err := tel.Shutdown(context.Background()); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64((cpu(b)-begun).Nanoseconds())/float64(n), "cpu-ns/exchange")
	if tel.export.queue.taken() != 0 {
		b.Error("records are left")
	}
}

// taken is how many bytes of q are in use.
func (q *queue) taken() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// cpu is the time that this process has used of all its processors.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discardOTLP is a collector that takes everything and reads nothing.
func discardOTLP(b *testing.B) (endpoint string) {
	b.Helper()
	return "http://" + serveGRPC(b, grpc.NewServer(grpc.ForceServerCodecV2(unread{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(nil); err != nil {
			return err
		}
		return s.SendMsg(nil)
	})))
}

// unread is a codec that looks at no message and sends empty ones.
type unread struct{}

var _ encoding.CodecV2 = unread{}

func (unread) Marshal(any) (mem.BufferSlice, error) { return nil, nil }
func (unread) Unmarshal(mem.BufferSlice, any) error { return nil }
func (unread) Name() string                         { return "proto" }

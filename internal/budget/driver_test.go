package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// raw is a codec of bytes: what a message costs to make is not what is measured.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("marshal a %T, want bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal keeps the message where v is a *[]byte, and lets it go where not.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*[]byte); ok {
		*b = data.Materialize()
	}
	return nil
}

// driver plays exchanges to one server, as Envoy does.
type driver struct{ conn *grpc.ClientConn }

func dial(b *testing.B, target string) driver {
	b.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return driver{conn}
}

var processDesc = &grpc.StreamDesc{StreamName: "Process", ServerStreams: true, ClientStreams: true}

func (d driver) open(ctx context.Context) (grpc.ClientStream, error) {
	return d.conn.NewStream(ctx, processDesc, extproc.ExternalProcessor_Process_FullMethodName)
}

// play plays one exchange. Messages are pace apart; with 0 they follow one
// another as soon as the replies are there.
func (d driver) play(ctx context.Context, steps []step, pace time.Duration) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	if err := send(s, steps, pace); err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(nil); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func send(s grpc.ClientStream, steps []step, pace time.Duration) error {
	var due <-chan time.Time // tokens come at a pace; nil: at none
	if pace > 0 {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		due = ticker.C
	}
	for i, st := range steps {
		if due != nil {
			select {
			case <-due:
			case <-s.Context().Done():
				return fmt.Errorf("wait to send message %d: %w", i, s.Context().Err())
			}
		}
		if err := s.SendMsg(fresh(st.message)); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("send message %d: %w", i, err)
		}
		for range st.replies {
			if err := s.RecvMsg(nil); err != nil {
				return fmt.Errorf("receive a reply to message %d: %w", i, err)
			}
		}
	}
	return nil
}

// playAll plays the exchange count times, width at a time.
func (d driver) playAll(b *testing.B, steps []step, count, width int, pace time.Duration) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(count))
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := d.play(b.Context(), steps, pace); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

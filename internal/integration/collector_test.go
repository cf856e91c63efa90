//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// startExporting starts a whole edge whose inferspan exports by env.
func startExporting(t *testing.T, e *edge, env []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	i, err := testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: binary, Dir: t.TempDir(), Config: e.config("default"), Env: env,
	})
	e.must(err)
	t.Cleanup(func() {
		i.Kill()
		if t.Failed() {
			t.Logf("inferspan wrote:\n%s", i.Log())
		}
	})
	e.inferspan, e.listen = i, i.Listen
	e.startEnvoy()
}

// counter is the sum of a metric on the page, over its series with all of labels.
func counter(ctx context.Context, i *testkit.Inferspan, name string, labels ...string) (int, error) {
	page, err := testkit.Get(ctx, "http://"+i.Admin+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
next:
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(\{.*\})? (\S+)$`).FindAllSubmatch(page, -1) {
		for _, l := range labels {
			if !bytes.Contains(m[1], []byte(l)) {
				continue next
			}
		}
		v, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return int(sum), nil
}

// With the collector away for as long as it takes to fill what waits for it many
// times over, traffic passes as ever; and when it is back, metrics have every
// exchange, and spans all but those that were counted as dropped.
func TestCollectorGoneAndBack(t *testing.T) {
	const exchanges, room, spansEach = 40, 20, 2
	e := newEdge(t, inline)
	addr := e.sink.Addr()
	e.sink.Close()
	startExporting(t, e, append(e.sink.Env(), fmt.Sprint("OTEL_BSP_MAX_QUEUE_SIZE=", room), "OTEL_EXPORTER_OTLP_TIMEOUT=300"))
	s := chatScript("away", nil)
	for range exchanges {
		if x := e.mustPlay(t, s, chatCall()); x.Status != http.StatusOK || x.Broken || !bytes.Equal(x.Body, s.Body()) {
			t.Fatalf("status %d, %d of %d bytes, broken %t", x.Status, len(x.Body), len(s.Body()), x.Broken)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var queued, full int
	e.must(testkit.Poll(ctx, func(ctx context.Context) (err error) {
		if queued, err = counter(ctx, e.inferspan, "inferspan_telemetry_queued_total"); err != nil {
			return err
		}
		if full, err = counter(ctx, e.inferspan, "inferspan_telemetry_dropped_total", `inferspan_reason="queue_full"`); err != nil {
			return err
		}
		if queued+full != exchanges*spansEach {
			return fmt.Errorf("%d spans queued and %d dropped of %d", queued, full, exchanges*spansEach)
		}
		return nil
	}))
	if queued != room {
		t.Errorf("%d spans wait, there is room for %d", queued, room)
	}
	_, err := e.inferspan.WaitLine(ctx, func(line string) bool { return strings.Contains(line, "the collector is away") })
	e.must(err)

	back, err := testkit.NewSinkAt(addr)
	e.must(err)
	t.Cleanup(back.Close)
	e.must(testkit.Poll(ctx, func(context.Context) error {
		if n := len(back.Spans(func(testkit.Span) bool { return true })); n != queued {
			return fmt.Errorf("%d spans arrived of %d", n, queued)
		}
		requests := 0.0
		if all := back.Metrics("inferspan.requests"); len(all) > 0 {
			for _, p := range testkit.Points(all[len(all)-1]) {
				requests += p.Value
			}
		}
		if requests != exchanges {
			return fmt.Errorf("metrics have %v exchanges of %d", requests, exchanges)
		}
		return nil
	}))
	sent, err := counter(ctx, e.inferspan, "inferspan_telemetry_sent_total")
	e.must(err)
	dropped, err := counter(ctx, e.inferspan, "inferspan_telemetry_dropped_total")
	e.must(err)
	if sent != queued || dropped != full {
		t.Errorf("%d sent, %d dropped; want %d, %d", sent, dropped, queued, full)
	}
	_, err = e.inferspan.WaitLine(ctx, func(line string) bool { return strings.Contains(line, "the collector answers again") })
	e.must(err)
}

// A collector that takes connections and never answers delays the end by no more
// than the flush may take.
func TestShutdownWithAHangingCollector(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // nobody accepts: the kernel does
	e := newEdge(t, inline)
	startExporting(t, e, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + ln.Addr().String()})
	if x := e.mustPlay(t, chatScript("hanging", nil), chatCall()); x.Status != http.StatusOK || x.Broken {
		t.Fatalf("status %d, broken %t", x.Status, x.Broken)
	}
	// Streams are over at once, the flush may take 5 s, the admin side 1 s.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e.client.Close()
	if err := e.inferspan.Stop(ctx); err != nil {
		t.Errorf("inferspan did not end in time: %v", err)
	}
	if !strings.Contains(e.inferspan.Log(), "telemetry was lost at the end") {
		t.Error("the log does not say that telemetry was lost")
	}
}

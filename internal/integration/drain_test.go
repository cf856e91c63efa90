//go:build integration

package integration

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestDrainInMidStream stops inferspan while a response streams. It leaves
// streams that Envoy can go on without, and stays for those that it can't.
func TestDrainInMidStream(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan("drain_timeout: 0s\n" + e.config("default"))
			e.startEnvoy()
			stays := form == duplex

			gate, stopped := make(chan struct{}), make(chan error, 1)
			stop := func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				stopped <- e.inferspan.Stop(ctx)
			}
			s, call := chatScript("drained", gate), chatCall()
			call.OnPiece = func(body []byte) {
				if !bytes.Equal(body, s.Pieces[0].Data) {
					return
				}
				e.live(t)
				if stays {
					go stop()
					e.notReady(t)
				} else {
					stop()
				}
				close(gate)
			}
			x := e.mustPlay(t, s, call)
			if x.Broken || !bytes.Equal(x.Body, s.Body()) {
				t.Errorf("got %d of %d bytes, broken %t; want all of it", len(x.Body), len(s.Body()), x.Broken)
			}
			if err := <-stopped; err != nil {
				t.Errorf("inferspan did not end well: %v", err)
			}
			want := "lost"
			if stays {
				want = "ok"
			}
			if got, _ := testkit.Attr(e.span(t, x.id).GetAttributes(), "inferspan.outcome"); got != want {
				t.Errorf("outcome %v, want %s", got, want)
			}
		})
	}
}

// live waits until inferspan says that it has an exchange: observing, it may be
// behind the client.
func (e *edge) live(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := e.sink.WaitMetric(ctx, "inferspan.request.active", func(m testkit.Metric) bool {
		return slices.ContainsFunc(testkit.Points(m), func(p testkit.Point) bool { return p.Value > 0 })
	})
	if err != nil {
		t.Error(err)
	}
}

// notReady waits until inferspan says that it is stopping.
func (e *edge) notReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := e.inferspan.WaitLine(ctx, func(line string) bool { return strings.Contains(line, `"msg":"drain"`) }); err != nil {
		t.Error(err)
	}
}

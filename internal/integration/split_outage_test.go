//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestReplicasKilled kills one replica after the other in mid-stream, with others
// to take over and traffic that never stops.
func TestReplicasKilled(t *testing.T) {
	for _, form := range []string{split, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, form, []int{0, 1}, []int{0, 1})
			traffic := p.startTraffic(t)
			for i := range p.replicas {
				p.untilItWorks(t, i)
			}
			for i := range p.replicas {
				p.replicas[i].Kill()
				p.replicas[i] = p.startReplica(p.replicas[i].Listen, p.config("default"))
				p.untilItWorks(t, i)
			}
			traffic.stop()
			for _, x := range traffic.played {
				p.checkSurvivor(t, x)
			}
			// All is as it was.
			after := p.many(t, 30, "after")
			for _, x := range after {
				p.checkContext(t, p.span(t, x.id), p.upstream(t, x.id))
			}
			spans := p.spans()
			missing := 0
			for _, x := range traffic.played {
				if n := spans[x.id]; n > 1 {
					t.Errorf("%s has %d spans", x.id, n)
				} else if n == 0 {
					missing++
				}
			}
			t.Logf("%d exchanges, %d of them without a span", len(traffic.played), missing)
		})
	}
}

// traffic are exchanges of half a second, eight at a time.
type traffic struct {
	played []exchange
	ended  chan struct{}
	wg     sync.WaitGroup
}

func (p *pair) startTraffic(t *testing.T) *traffic {
	t.Helper()
	s := chatScript("traffic", nil)
	s.Pieces[1].At, s.Pieces[2].At = 250*time.Millisecond, 500*time.Millisecond
	tr := &traffic{ended: make(chan struct{})}
	t.Cleanup(tr.stop)
	var mu sync.Mutex
	for range 8 {
		tr.wg.Go(func() {
			for {
				select {
				case <-tr.ended:
					return
				default:
				}
				x, err := p.play(context.WithoutCancel(t.Context()), s, chatCall())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tr.played = append(tr.played, x)
				mu.Unlock()
			}
		})
	}
	return tr
}

// stop may be called more than once.
func (tr *traffic) stop() {
	select {
	case <-tr.ended:
	default:
		close(tr.ended)
	}
	tr.wg.Wait()
}

// untilItWorks waits until replica i decides, observes and has a live exchange.
func (p *pair) untilItWorks(t *testing.T, i int) {
	t.Helper()
	r := p.replicas[i]
	wait(t, func() error {
		for _, name := range []string{"inferspan_route_decisions_total", "inferspan_requests_total", "inferspan_request_active"} {
			if counted(t, r, name, "") == 0 {
				return fmt.Errorf("replica %d has no %s", i, name)
			}
		}
		return nil
	})
}

// checkSurvivor wants an answer to be whole, and its record, if there is one, to
// be of this exchange once and of nothing that was said twice.
func (p *pair) checkSurvivor(t *testing.T, x exchange) {
	t.Helper()
	body := chatScript("", nil).Body()
	if p.form == splitDuplex && x.Status == http.StatusInternalServerError {
		return // its deciding stream died with a part of the body
	}
	if x.Status != http.StatusOK || x.Broken || !bytes.Equal(x.Body, body) {
		t.Errorf("%s: status %d, %d of %d bytes, broken %t", x.id, x.Status, len(x.Body), len(body), x.Broken)
	}
	var records []map[string]any
	for _, r := range p.replicas {
		// What a replica that was killed had recorded went with it.
		if found, err := r.Lookup(t.Context(), x.id); err == nil {
			records = append(records, found...)
		}
	}
	if len(records) > 1 {
		t.Errorf("%s has %d records: %v", x.id, len(records), records)
	}
	for _, r := range records {
		if r["outcome"] != "ok" || r["bytes"] != float64(len(body)) || r["events"] != 4.0 || r["output_tokens"] != 2.0 {
			t.Errorf("%s: outcome %v, %v bytes, %v events, %v tokens; want ok, %d, 4, 2",
				x.id, r["outcome"], r["bytes"], r["events"], r["output_tokens"], len(body))
		}
	}
}

// TestFilterDown has no replica for one of the filters.
func TestFilterDown(t *testing.T) {
	t.Run("no decision", func(t *testing.T) {
		t.Parallel()
		p := startPair(t, split, []int{nobody}, []int{1})
		played := p.many(t, 10, "undecided")
		for _, x := range played {
			s := p.span(t, x.id)
			if x.Status != http.StatusOK || x.Header.Get("x-trace-id") != "" || !testkit.HasAttrs(s.GetAttributes(), map[string]any{
				"inferspan.outcome": "ok", "inferspan.route.reason": "unrouted", "inferspan.first_token.kind": "content",
			}) {
				t.Errorf("status %d, x-trace-id %q, the span is %v", x.Status, x.Header.Get("x-trace-id"), s.GetAttributes())
			}
			if up := p.upstream(t, x.id); up.Header.Get("traceparent") != "" {
				t.Errorf("the model server got the traceparent %s", up.Header.Get("traceparent"))
			}
		}
		wait(t, func() error {
			if n := counted(t, p.replicas[1], "inferspan_processor_faults_total", `inferspan_reason="handover_missing"`); n != 10 {
				return fmt.Errorf("handover_missing counts %v, want 10", n)
			}
			return nil
		})
		p.everyOnce(t, played)
	})
	t.Run("no observation", func(t *testing.T) {
		t.Parallel()
		p := startPair(t, split, []int{0}, []int{nobody})
		for _, x := range p.many(t, 10, "unobserved") {
			trace := x.Header.Get("x-trace-id")
			up := p.upstream(t, x.id)
			if x.Status != http.StatusOK || len(trace) != 32 || !strings.Contains(up.Header.Get("traceparent"), trace) {
				t.Errorf("status %d, x-trace-id %q, the model server got %q", x.Status, trace, up.Header.Get("traceparent"))
			}
		}
		if n := counted(t, p.replicas[0], "inferspan_route_decisions_total", ""); n != 10 {
			t.Errorf("%v decisions, want 10", n)
		}
		p.everyOnce(t, nil)
	})
}

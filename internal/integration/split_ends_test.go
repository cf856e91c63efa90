//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestHangUps has clients leave while they send and while they wait: each of
// these exchanges has one record, whichever filter could make it.
func TestHangUps(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, form)
			want := map[string]int{}
			for what, sent := range map[string]int{"headers": 0, "some": 10_000, "much": 600_000} {
				id := e.form + "-upload-" + what
				e.hangUpInUpload(t, id, sent)
				want[id] = 1
				r := e.record(t, id)
				if r["outcome"] != "client_cancelled" || r["status"] != nil {
					t.Errorf("%s: outcome %v, status %v", what, r["outcome"], r["status"])
				}
			}
			t.Run("prefill", e.leavesBeforeTheResponse)
			want[fmt.Sprintf("%s-silent-%d", e.form, e.serial)] = 1
			t.Run("all matched", e.allMatched)
			if diff := cmp.Diff(want, e.spans()); diff != "" {
				t.Errorf("spans with an outcome by request id (-want +got):\n%s", diff)
			}
		})
	}
}

// hangUpInUpload announces a megabyte and leaves when inferspan has the exchange
// and a part of the body is on its way.
func (e *edge) hangUpInUpload(t *testing.T, id string, sent int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := `{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("x", sent)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"X-Request-Id: %s\r\nContent-Length: 1000000\r\n\r\n", e.addr, id)
	if err == nil && sent > 0 {
		_, err = io.WriteString(conn, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	filter := stats(e.form)[0]
	err = testkit.Poll(ctx, func(ctx context.Context) error {
		n, err := e.envoy.Stat(ctx, "http.inference.downstream_rq_active")
		started, serr := e.envoy.Stat(ctx, filter+"streams_started")
		closed, cerr := e.envoy.Stat(ctx, filter+"streams_closed")
		if err = errors.Join(err, serr, cerr); err != nil || n == 0 || started == closed {
			return fmt.Errorf("%d requests, %d streams of %s, %d of them closed: %w", n, started, filter, closed, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUsageAlways asks for usage where only the second filter sees the response:
// the record is exact, and the client sees what was asked.
func TestUsageAlways(t *testing.T) {
	for _, form := range []string{split, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(e.config("default") + "usage: {ask: always}\n")
			e.startEnvoy()
			call, _ := recordedAs(t, "chat-no-usage")
			_, s := recordedAs(t, "chat-continuous-usage")
			x := e.mustPlay(t, s, call)
			if diff := cmp.Diff(string(s.Body()), string(x.Body)); diff != "" || x.Status != http.StatusOK {
				t.Errorf("status %d, the client's bytes (-sent +got):\n%s", x.Status, diff)
			}
			if up := e.upstream(t, x.id); string(up.Body) != strings.TrimSuffix(string(call.Body), "}")+asking {
				t.Errorf("the model server got %s", up.Body)
			}
			if r := e.record(t, x.id); r["output_source"] != "usage" || r["output_tokens"] != 24.0 {
				t.Errorf("%v tokens from %v", r["output_tokens"], r["output_source"])
			}
		})
	}
}

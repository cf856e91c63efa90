//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestHoldTotal has a client stand still before its model, so that another finds no
// room: it gets 503, and what it asked for once the first has left.
func TestHoldTotal(t *testing.T) {
	for _, form := range []string{duplex, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(e.config("default") + "request: {hold_limit: 256KiB, hold_total: 256KiB}\n")
			e.startEnvoy()
			large := chatCall()
			large.Body = []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 200<<10) + `"}],"stream":true,` + asTiny + `}`)
			become := func(status int) (x exchange) {
				t.Helper()
				err := testkit.Poll(t.Context(), func(ctx context.Context) (err error) {
					if x, err = e.play(ctx, chatScript("large", nil), large); err == nil && x.Status != status {
						err = fmt.Errorf("status %d, want %d: %s", x.Status, status, x.Body)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return x
			}
			become(http.StatusOK)
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", e.addr)
			if err != nil {
				t.Fatal(err)
			}
			half := len(large.Body) / 2
			_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s",
				len(large.Body), large.Body[:half])
			if err != nil {
				t.Fatal(errors.Join(err, conn.Close()))
			}
			x := become(http.StatusServiceUnavailable)
			if x.Header.Get("x-inferspan-reason") != "overloaded" || x.Header.Get("retry-after") != "1" {
				t.Errorf("its headers are %v", x.Header)
			}
			if r := e.record(t, x.id); r["outcome"] != "rejected" {
				t.Errorf("the outcome is %v", r["outcome"])
			}
			if x := e.mustPlay(t, chatScript("small", nil), chatCall()); x.Status != http.StatusOK {
				t.Errorf("a request that needs no room: status %d: %s", x.Status, x.Body)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			become(http.StatusOK)
		})
	}
}

//go:build integration

package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	before := e.taken(t)
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
	need := taken{headers: 1}
	switch {
	case whole(e.form):
		need.replies = 1
	case e.form == splitDuplex && sent > 256<<10:
		need.headers = 2 // it was decided, and goes on to the second filter
	}
	wait(t, func() error {
		now := e.taken(t)
		if now.headers < before.headers+need.headers || now.replies < before.replies+need.replies {
			return fmt.Errorf("taken are %+v, before %+v", now, before)
		}
		return nil
	})
}

// taken is how far requests have come: how many headers inferspan has worked on,
// and how many of the replies of the first filter Envoy has.
type taken struct{ headers, replies float64 }

func (e *edge) taken(t *testing.T) taken {
	t.Helper()
	replies, err := e.envoy.Stat(t.Context(), stats(e.form)[0]+"stream_msgs_received")
	if err != nil {
		t.Fatal(err)
	}
	headers := counted(t, e.inferspan, "inferspan_processor_overhead_seconds_count", `inferspan_phase="request_headers"`)
	return taken{headers, float64(replies)}
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

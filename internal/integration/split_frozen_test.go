//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestFrozenDecider stops the process of the deciding filter, before a request and
// in the middle of one: Envoy waits for its message timeout and goes on. When the
// process runs again, it takes none of these exchanges for one of its own.
func TestFrozenDecider(t *testing.T) {
	t.Parallel()
	p := startPair(t, split, []int{0}, []int{1})
	decider := p.replicas[0].PID()
	t.Cleanup(func() { _ = syscall.Kill(decider, syscall.SIGCONT) })
	played := p.many(t, 1, "before")

	s := chatScript("half", nil)
	const id = "split-half"
	p.mu.Lock()
	p.scripts[id] = s
	p.mu.Unlock()
	played = append(played, exchange{id: id})
	half := p.half(t, id)
	p.stop(decider)
	played = append(played, p.many(t, 8, "frozen")...)
	if _, err := io.WriteString(half, tinyChat[10:]); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(half), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if cerr := answer.Body.Close(); err != nil || cerr != nil || !bytes.Equal(body, s.Body()) {
		t.Errorf("the client got %d of %d bytes: %v, %v", len(body), len(s.Body()), err, cerr)
	}
	p.must(syscall.Kill(decider, syscall.SIGCONT))
	for _, x := range played[1:] {
		if !testkit.HasAttrs(p.span(t, x.id).GetAttributes(), map[string]any{"inferspan.outcome": "ok", "inferspan.route.reason": "unrouted"}) {
			t.Errorf("the span of %s is %v", x.id, p.span(t, x.id).GetAttributes())
		}
	}
	p.everyOnce(t, played)
}

// half sends a request up to the middle of its body, and returns when inferspan has
// answered its headers.
func (p *pair) half(t *testing.T, id string) net.Conn {
	t.Helper()
	const answers = "http.inference.ext_proc.route.stream_msgs_received"
	before, err := p.envoy.Stat(t.Context(), answers)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"X-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s", p.addr, id, len(tinyChat), tinyChat[:10])
	if err != nil {
		t.Fatal(err)
	}
	wait(t, func() error {
		n, err := p.envoy.Stat(t.Context(), answers)
		if err == nil && n == before {
			err = fmt.Errorf("%s is still %d", answers, n)
		}
		return err
	})
	return conn
}

package scrape

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server and returns its address.
func serve(t *testing.T, h http.HandlerFunc, connections *atomic.Int64) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func overHTTP(t *testing.T, f *fleet) *Scraper {
	t.Helper()
	s := New(Config{Router: f, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// One connection serves every question, whatever the answer.
func TestConnectionIsKept(t *testing.T) {
	var connections, asked atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case r.Header.Get("Accept-Encoding") != "" || !strings.HasPrefix(r.Header.Get("Accept"), "text/plain"):
			w.WriteHeader(http.StatusNotAcceptable)
		case n%4 == 0:
			http.NotFound(w, r)
		case n%4 == 1:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			_, _ = w.Write([]byte(wholePage(1)))
		}
	}, &connections)
	f := newFleet()
	s := overHTTP(t, f)
	ask := s.metricsOf(Target{Address: addr, Metrics: Page{Interval: time.Second, Timeout: 10 * time.Second, Path: "/metrics"}})
	for range 20 {
		ask(t.Context())
	}
	if connections.Load() != 1 || asked.Load() != 20 || len(f.signals[addr]) != 10 {
		t.Errorf("%d connections for %d questions, %d signals; want 1, 20 and 10", connections.Load(), asked.Load(), len(f.signals[addr]))
	}
}

func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	s := overHTTP(t, newFleet())
	page := Page{Timeout: 10 * time.Second, Path: "/metrics"}
	if _, err := s.signals(t.Context(), page.url(addr), page.Timeout); reasonOf(err) != FailedUnreachable {
		t.Errorf("a closed port: %v, which is %s, want %s", err, reasonOf(err), FailedUnreachable)
	}
}

func TestTimeouts(t *testing.T) {
	var connections atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("vllm:num_requests_running 3\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, &connections)
	s := overHTTP(t, newFleet())
	if _, err := s.signals(t.Context(), "http://"+addr+"/metrics", 50*time.Millisecond); reasonOf(err) != FailedTimeout {
		t.Errorf("a page that does not end: %v, which is %s, want %s", err, reasonOf(err), FailedTimeout)
	}
}

func TestBrokenPage(t *testing.T) {
	var connections atomic.Int64
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("vllm:num_requests_running 3\n"))
	}, &connections)
	s := overHTTP(t, newFleet())
	if _, err := s.signals(t.Context(), "http://"+addr+"/metrics", 10*time.Second); reasonOf(err) != FailedBroken {
		t.Errorf("half a page: %v, which is %s, want %s", err, reasonOf(err), FailedBroken)
	}
}

func TestURL(t *testing.T) {
	for _, c := range []struct {
		page          Page
		address, want string
	}{
		{Page{Path: "/metrics"}, "10.0.0.1:8000", "http://10.0.0.1:8000/metrics"},
		{Page{Path: "/m", Port: 9100}, "10.0.0.1:8000", "http://10.0.0.1:9100/m"},
		{Page{Path: "/metrics", Port: 9100}, "[fd00::7]:8000", "http://[fd00::7]:9100/metrics"},
	} {
		if got := c.page.url(c.address); got != c.want {
			t.Errorf("%+v of %s: %s, want %s", c.page, c.address, got, c.want)
		}
	}
}

// BenchmarkAsk is all that one question costs, the server's part included.
func BenchmarkAsk(b *testing.B) {
	text := []byte(realPage(b))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	b.Cleanup(server.Close)
	s := New(Config{Logger: slog.New(slog.DiscardHandler)})
	b.Cleanup(s.client.CloseIdleConnections)
	b.ReportAllocs()
	for b.Loop() {
		if signals, err := s.signals(b.Context(), server.URL, 10*time.Second); err != nil || !signals.Running.OK {
			b.Fatal(signals, err)
		}
	}
}

package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves until the test ends and returns the server and its URL.
func start(t *testing.T, requests http.HandlerFunc) (s *Server, url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = New(Config{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a_metric 1\n")
		}),
		Requests: requests,
		Missing:  func() string { return "pool a: no answer yet" },
		Logger:   slog.New(slog.DiscardHandler),
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + l.Addr().String()
}

func ask(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestServer_Pages(t *testing.T) {
	s, url := start(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "records of "+r.URL.Path) })
	f := func(method, path string, status int, body string) {
		t.Helper()
		gotStatus, got := ask(t, method, url+path)
		if gotStatus != status || !strings.HasPrefix(got, body) {
			t.Errorf("%s %s: %d %q, want %d %q", method, path, gotStatus, got, status, body)
		}
	}
	f("GET", "/healthz", 200, "alive")
	f("GET", "/readyz", 503, "not ready: pool a: no answer yet\n")
	s.SetReady(true)
	f("GET", "/readyz", 200, "ready")
	f("HEAD", "/readyz", 200, "")
	s.SetReady(false)
	f("GET", "/readyz", 503, "not ready")
	f("GET", "/healthz", 200, "alive")
	f("GET", "/metrics", 200, "a_metric 1")
	f("POST", "/metrics", 405, "")
	f("GET", "/api/v1/requests/x", 200, "records of /api/v1/requests/x")
	f("GET", "/api/v1/requests/%2E%2E", 200, "records of /api/v1/requests/..")
	f("GET", "/api/v1/requests/..", 200, "records of /api/v1/requests/..")
	f("GET", "/api/v1/requests/%2F", 200, "records of /api/v1/requests//")
	f("GET", "/api/v1/requests/a%2Fb", 200, "records of /api/v1/requests/a/b")
	f("GET", "/", 404, "not found; there are /metrics")
	f("GET", "/debug/pprof/", 404, "not found")
}

func TestServer_ShutdownCutsOff(t *testing.T) {
	entered := make(chan struct{})
	s, url := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	asked := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/requests/x", nil)
		if err != nil {
			asked <- err
			return
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		asked <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want %v", err, context.Canceled)
	}
	if err := <-asked; err == nil {
		t.Error("the request that hung was answered")
	}
}

func TestServer_ServeFails(t *testing.T) {
	s := New(Config{Metrics: http.NotFoundHandler(), Requests: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err == nil || !strings.HasPrefix(err.Error(), "serve admin on 127.0.0.1:") {
		t.Errorf("Serve on a closed listener: %v", err)
	}
}

// Package admin is the HTTP server for people, probes and scrapers. Nothing on
// it is authenticated, so its address is the loopback by default; nothing on it
// changes anything, and it shows no prompt and no completion.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Limits of one connection: no client, slow or silent, keeps one for good.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = time.Minute // a large page to a slow scraper
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
)

// requestsPrefix is where an id follows.
const requestsPrefix = "/api/v1/requests/"

// Config is what a Server serves.
type Config struct {
	Metrics  http.Handler // GET /metrics
	Requests http.Handler // all below requestsPrefix, as it was sent
	// Missing says what it is that is waited for before all is ready, for people;
	// empty: nothing is.
	Missing func() string
	Logger  *slog.Logger
}

// Server is the admin server. It begins not ready.
type Server struct {
	http  *http.Server
	ready atomic.Bool
}

// New returns a Server for c.
func New(c Config) *Server {
	s := &Server{}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "alive\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.ready.Load() {
			answer(w, http.StatusOK, "ready\n")
			return
		}
		why := c.Missing()
		if why == "" {
			why = "starting or draining"
		}
		answer(w, http.StatusServiceUnavailable, "not ready: "+why+"\n")
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, "not found; there are /metrics, /healthz, /readyz and /api/v1/requests/{id}\n")
	})
	s.http = &http.Server{
		Handler:           uncleaned(c.Requests, mux),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// uncleaned hands the requests below requestsPrefix to h as they came, and all
// others to next. A ServeMux would clean the ids ".", ".." and "/" away.
func uncleaned(h, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), requestsPrefix) {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetReady says what /readyz answers.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// Serve serves on l until Shutdown; it owns l. Its error is nil after Shutdown.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin on %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown lets requests finish until ctx ends, then cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop the admin server: %w", err), s.http.Close())
	}
	return nil
}

func answer(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that is gone has no use for the rest.
	_, _ = io.WriteString(w, text)
}

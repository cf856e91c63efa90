package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ScriptHeader names, on a request, the script that answers it; ScriptQuery is
// the query parameter for clients that can't set a header.
const (
	ScriptHeader = "x-testkit-script"
	ScriptQuery  = "script"
)

// VLLMOptions tune a VLLM.
type VLLMOptions struct {
	// Addr is where it listens; empty: a free port of 127.0.0.1.
	Addr string
	// Scripts can be asked for by name.
	Scripts map[string]Script
	// Choose answers a request that names no script; nil or false: 404.
	Choose func(*http.Request, []byte) (Script, bool)
	// FreshIDs gives every response ids of its own.
	FreshIDs bool
	// Keep is the number of requests kept for Received; 0 keeps none.
	Keep int
}

// VLLM is a stand-in for a vLLM server: HTTP/1.1, one write per piece, answers
// by script. It answers /health itself unless a script is named, and echoes
// the bytes of an upgraded connection. It is safe for concurrent use.
type VLLM struct {
	o      VLLMOptions
	ln     net.Listener
	server *http.Server
	served chan struct{}
	closed chan struct{}

	playing atomic.Int64 // requests that are being answered
	queued  atomic.Int64 // requests that it says wait
	health  atomic.Int64 // the status that says how it is

	mu       sync.Mutex
	queue    []Script
	received []Received
	arrived  chan struct{} // closed and replaced at each arrival
}

// Received is a request as it arrived.
type Received struct {
	Method, Path     string
	Header           http.Header
	Trailer          http.Header
	ContentLength    int64 // -1: not said
	TransferEncoding []string
	Body             []byte
}

// NewVLLM starts a server.
func NewVLLM(o VLLMOptions) (*VLLM, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening for the stand-in vLLM: %w", err)
	}
	v := &VLLM{o: o, ln: ln, served: make(chan struct{}), closed: make(chan struct{}), arrived: make(chan struct{})}
	v.SetHealth(http.StatusOK)
	v.server = &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(v.served)
		_ = v.server.Serve(ln) // always http.ErrServerClosed: only Close ends it
	}()
	return v, nil
}

// Addr returns the server's ip:port.
func (v *VLLM) Addr() string { return v.ln.Addr().String() }

// Close ends the server, its connections and the responses that still play.
func (v *VLLM) Close() error {
	close(v.closed)
	err := v.server.Close()
	<-v.served
	return err
}

// Enqueue makes scripts answer the next requests that name none, in order.
func (v *VLLM) Enqueue(s ...Script) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, s...)
}

// Received returns the kept requests that match, oldest first.
func (v *VLLM) Received(match func(Received) bool) []Received {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.matching(match)
}

// WaitReceived returns the oldest kept request that matches, as soon as there
// is one.
func (v *VLLM) WaitReceived(ctx context.Context, match func(Received) bool) (Received, error) {
	for {
		v.mu.Lock()
		found, arrived := v.matching(match), v.arrived
		v.mu.Unlock()
		if len(found) > 0 {
			return found[0], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Received{}, fmt.Errorf("waiting for a request at %s: %w", v.Addr(), ctx.Err())
		}
	}
}

func (v *VLLM) matching(match func(Received) bool) []Received {
	var found []Received
	for _, r := range v.received {
		if match(r) {
			found = append(found, r)
		}
	}
	return found
}

// ServeHTTP plays the script that the request chooses.
func (v *VLLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		echo(w, r)
		return
	}
	if r.UserAgent() == asker {
		v.tell(w, r)
		return
	}
	v.playing.Add(1)
	defer v.playing.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the request broke off: there is no one to answer
	}
	v.keep(r, body)
	s, ok := v.choose(r, body)
	switch {
	case ok:
	case r.URL.Path == "/health":
		s = Script{Status: http.StatusOK}
	default:
		s = Script{
			Status: http.StatusNotFound,
			Header: []Header{{"content-type", "application/json"}},
			Pieces: []Piece{{Data: []byte(`{"detail":"Not Found"}`)}},
		}
	}
	if v.o.FreshIDs {
		s = s.FreshIDs()
	}
	v.play(w, r, s)
}

func (v *VLLM) keep(r *http.Request, body []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.o.Keep == 0 {
		return
	}
	if len(v.received) == v.o.Keep {
		v.received = v.received[1:]
	}
	v.received = append(v.received, Received{
		Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Trailer: r.Trailer,
		ContentLength: r.ContentLength, TransferEncoding: r.TransferEncoding, Body: body,
	})
	close(v.arrived)
	v.arrived = make(chan struct{})
}

func (v *VLLM) choose(r *http.Request, body []byte) (Script, bool) {
	for _, name := range []string{r.Header.Get(ScriptHeader), r.URL.Query().Get(ScriptQuery)} {
		if name != "" {
			s, ok := v.o.Scripts[name]
			return s, ok
		}
	}
	v.mu.Lock()
	if len(v.queue) > 0 {
		s := v.queue[0]
		v.queue = v.queue[1:]
		v.mu.Unlock()
		return s, true
	}
	v.mu.Unlock()
	if v.o.Choose != nil {
		return v.o.Choose(r, body)
	}
	return Script{}, false
}

// player plays one script to one client.
type player struct {
	v     *VLLM
	r     *http.Request
	start time.Time
}

// wait returns true at the given time after the start, and false when the
// client or the server has gone before.
func (p player) wait(at time.Duration, after <-chan struct{}) bool {
	if after != nil {
		select {
		case <-after:
		case <-p.r.Context().Done():
			return false
		case <-p.v.closed:
			return false
		}
	}
	left := at - time.Since(p.start)
	if left <= 0 {
		return p.r.Context().Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.r.Context().Done():
		return false
	case <-p.v.closed:
		return false
	}
}

func (v *VLLM) play(w http.ResponseWriter, r *http.Request, s Script) {
	p := player{v: v, r: r, start: time.Now()}
	if !p.wait(s.HeadAt, nil) {
		panic(http.ErrAbortHandler)
	}
	for _, h := range s.Header {
		switch http.CanonicalHeaderKey(h.Name) {
		case "Transfer-Encoding", "Date": // the server's own matters
		default:
			w.Header().Add(h.Name, h.Value)
		}
	}
	for _, h := range s.Trailer {
		w.Header().Add("Trailer", h.Name)
	}
	w.WriteHeader(s.Status)
	out := http.NewResponseController(w)
	// An answer of known length leaves as one write, as a server sends it.
	if w.Header().Get("Content-Length") == "" && len(s.Pieces) > 0 {
		_ = out.Flush() // a client that has gone shows at the next wait
	}
	for _, piece := range s.Pieces {
		if !p.wait(piece.At, piece.After) {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(piece.Data) // as above
		_ = out.Flush()
	}
	switch s.End {
	case EndHold:
		select {
		case <-r.Context().Done():
		case <-v.closed:
		}
		panic(http.ErrAbortHandler)
	case EndTruncated, EndReset:
		if p.wait(s.EndAt, s.EndAfter) {
			breakOff(out, s.End)
		}
		panic(http.ErrAbortHandler)
	default:
		if !p.wait(s.EndAt, s.EndAfter) {
			panic(http.ErrAbortHandler)
		}
		for _, h := range s.Trailer {
			w.Header().Add(h.Name, h.Value)
		}
	}
}

// breakOff closes the connection without the response's end.
func breakOff(out *http.ResponseController, e End) {
	conn, _, err := out.Hijack()
	if err != nil {
		return // the connection is gone already
	}
	if tcp, ok := conn.(*net.TCPConn); ok && e == EndReset {
		_ = tcp.SetLinger(0) // Close then sends a reset
	}
	_ = conn.Close()
}

// echo accepts an upgrade and sends back what comes.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	if _, err := conn.Write(head.Bytes()); err != nil {
		return
	}
	if _, err := io.Copy(conn, rw.Reader); err != nil && !errors.Is(err, net.ErrClosed) {
		return
	}
}

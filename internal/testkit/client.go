package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Client sends requests to one address and notes when the bytes of the answers
// arrive. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client of the server at addr that speaks HTTP/1.1, or
// HTTP/2 without TLS.
func NewClient(addr string, http2 bool) *Client {
	t := &http.Transport{
		DisableCompression: true, // the bytes are wanted as they came
		DialContext:        (&net.Dialer{}).DialContext,
		Protocols:          &http.Protocols{},
	}
	t.Protocols.SetHTTP1(!http2)
	t.Protocols.SetUnencryptedHTTP2(http2)
	return &Client{base: "http://" + addr, http: &http.Client{Transport: t}}
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call is one request and what is to happen to its answer.
type Call struct {
	Method, Path string
	Header       []Header
	Body         []byte
	// Chunked sends the body without its length.
	Chunked bool
	Trailer []Header // with Chunked only
	// HangUpAfter, if above 0, hangs up when that many bytes of the body have
	// arrived.
	HangUpAfter int
	// OnPiece, if set, is called after each piece with all bytes so far.
	OnPiece func(body []byte)
}

// Answer is what a client got.
type Answer struct {
	Status   int
	Header   http.Header
	Trailer  http.Header
	HeadAt   time.Duration // since the call began
	Body     []byte
	Arrivals []Arrival
	EndAt    time.Duration
	// Broken tells that the answer broke off before its end.
	Broken bool
	// HungUp tells that HangUpAfter was reached.
	HungUp bool
}

// Arrival says that the body had Bytes bytes at At.
type Arrival struct {
	At    time.Duration
	Bytes int
}

// ArrivedAt returns when the byte at offset arrived.
func (a *Answer) ArrivedAt(offset int) (time.Duration, bool) {
	for _, arrival := range a.Arrivals {
		if arrival.Bytes > offset {
			return arrival.At, true
		}
	}
	return 0, false
}

// Do makes a call. An answer that breaks off after its head is no error; one
// without a head is.
func (c *Client) Do(ctx context.Context, call Call) (*Answer, error) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	var body io.Reader
	if call.Body != nil {
		body = bytes.NewReader(call.Body)
	}
	if call.Chunked {
		body = io.MultiReader(body) // hides the length
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, c.base+call.Path, body)
	if err != nil {
		return nil, fmt.Errorf("calling %s %s: %w", call.Method, call.Path, err)
	}
	for _, h := range call.Header {
		req.Header.Add(h.Name, h.Value)
	}
	for _, h := range call.Trailer {
		if req.Trailer == nil {
			req.Trailer = http.Header{}
		}
		req.Trailer.Add(h.Name, h.Value)
	}
	start := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("calling %s %s: %w", call.Method, call.Path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, HeadAt: time.Since(start)}
	err = a.read(resp.Body, start, call)
	if a.HungUp {
		hangUp()
	}
	a.EndAt = time.Since(start)
	a.Trailer = resp.Trailer
	if err != nil {
		if ctx.Err() != nil && !a.HungUp {
			return a, fmt.Errorf("calling %s %s: %w after %d bytes", call.Method, call.Path, err, len(a.Body))
		}
		a.Broken = true
	}
	return a, nil
}

func (a *Answer) read(r io.Reader, start time.Time, call Call) error {
	piece := make([]byte, 64<<10)
	for {
		n, err := r.Read(piece)
		if n > 0 {
			a.Body = append(a.Body, piece[:n]...)
			a.Arrivals = append(a.Arrivals, Arrival{time.Since(start), len(a.Body)})
			if call.OnPiece != nil {
				call.OnPiece(a.Body)
			}
			if call.HangUpAfter > 0 && len(a.Body) >= call.HangUpAfter {
				a.HungUp = true
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Upgrade opens a connection to addr and upgrades it to a websocket, without
// its framing: what comes after the answer's head is the caller's.
func Upgrade(ctx context.Context, addr, path string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("upgrading %s: %w", path, err)
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path, addr)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("upgrading %s: %w", path, err)
	}
	// Read byte by byte: no buffer may take what follows the head.
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		var b [1]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("upgrading %s: %w after %q", path, err, head)
		}
		head = append(head, b[0])
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
		_ = conn.Close()
		return nil, fmt.Errorf("upgrading %s: refused: %q", path, head)
	}
	return conn, nil
}

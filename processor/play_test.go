package processor

import (
	"slices"
	"strings"
	"testing"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

type bodyMode = filter.ProcessingMode_BodySendMode

const (
	none     = filter.ProcessingMode_NONE
	buffered = filter.ProcessingMode_BUFFERED
	partial  = filter.ProcessingMode_BUFFERED_PARTIAL
	streamed = filter.ProcessingMode_STREAMED
	duplex   = filter.ProcessingMode_FULL_DUPLEX_STREAMED
)

// shape is an exchange, apart from the modes in which Envoy shows it.
type shape struct {
	name string
	head []string // chatHead if nil
	// frames of a direction; nil: its headers are the end.
	request, response                 []string
	responseHead                      []string
	requestTrailers, responseTrailers bool
	// emptyEnd: the end comes as an empty frame of its own.
	emptyEnd bool
	// localReply: there is no request, Envoy answers itself.
	localReply bool
}

// seen is what Envoy would do to the exchange by our replies.
type seen struct {
	upstream, downstream string // the bodies
	set                  map[string]string
	removed              []string
	responseSet          map[string]string
	metadata             map[string]string // of envoy.lb and inferspan, keys joined by /
	immediate            *extproc.ImmediateResponse
	cleared              bool
}

// play sends a shape as Envoy would with these modes, and fails the test for
// every reply that is one too many, out of order, or not of the mode's form.
func play(t *testing.T, e *envoy, request, response bodyMode, s shape) seen {
	t.Helper()
	p := newPlayer(t, e)
	if !s.localReply {
		p.request(request, s)
	}
	if p.seen.immediate != nil {
		e.ended()
		return p.seen
	}
	p.response(response, s)
	return p.seen
}

func newPlayer(t *testing.T, e *envoy) *player {
	t.Helper()
	return &player{t: t, e: e, seen: seen{
		set: map[string]string{}, responseSet: map[string]string{}, metadata: map[string]string{},
	}}
}

type player struct {
	t    *testing.T
	e    *envoy
	seen seen
}

func (p *player) request(mode bodyMode, s shape) {
	p.t.Helper()
	head := s.head
	if head == nil {
		head = chatHead()
	}
	p.direction(side{
		mode: mode, head: head, frames: s.request, trailers: s.requestTrailers, emptyEnd: s.emptyEnd,
		headers: requestHeaders, body: requestBody, trailer: requestTrailers,
		headerReply: func(r *extproc.ProcessingResponse) *extproc.HeadersResponse { return r.GetRequestHeaders() },
		bodyReply:   func(r *extproc.ProcessingResponse) *extproc.BodyResponse { return r.GetRequestBody() },
		trailReply:  func(r *extproc.ProcessingResponse) bool { return r.GetRequestTrailers() != nil },
		set:         p.seen.set, to: &p.seen.upstream,
	})
}

func (p *player) response(mode bodyMode, s shape) {
	p.t.Helper()
	head := s.responseHead
	if head == nil {
		head = streamHead
	}
	p.direction(side{
		mode: mode, head: head, frames: s.response, trailers: s.responseTrailers, emptyEnd: s.emptyEnd,
		headers: responseHeaders, body: responseBody, trailer: responseTrailers,
		headerReply: func(r *extproc.ProcessingResponse) *extproc.HeadersResponse { return r.GetResponseHeaders() },
		bodyReply:   func(r *extproc.ProcessingResponse) *extproc.BodyResponse { return r.GetResponseBody() },
		trailReply:  func(r *extproc.ProcessingResponse) bool { return r.GetResponseTrailers() != nil },
		set:         p.seen.responseSet, to: &p.seen.downstream,
	})
}

// side is one direction of an exchange.
type side struct {
	mode               bodyMode
	head, frames       []string
	trailers, emptyEnd bool
	headers            func(end bool, pairs ...string) *extproc.ProcessingRequest
	body               func(body string, end bool) *extproc.ProcessingRequest
	trailer            func() *extproc.ProcessingRequest
	headerReply        func(*extproc.ProcessingResponse) *extproc.HeadersResponse
	bodyReply          func(*extproc.ProcessingResponse) *extproc.BodyResponse
	trailReply         func(*extproc.ProcessingResponse) bool
	set                map[string]string
	to                 *string
}

func (p *player) direction(s side) {
	p.t.Helper()
	end := s.frames == nil && !s.trailers
	p.e.send(s.headers(end, s.head...))
	if s.mode == duplex {
		p.duplex(s, end)
		return
	}
	if !p.header(s, p.e.recv()) || s.frames == nil && !s.trailers {
		return
	}
	frames := s.frames
	switch s.mode {
	case none:
		*s.to = strings.Join(frames, "")
		frames = nil
	case buffered, partial:
		if frames != nil {
			frames = []string{strings.Join(frames, "")}
		}
	case streamed:
		if s.emptyEnd && !s.trailers {
			frames = append(slices.Clone(frames), "")
		}
	}
	for i, f := range frames {
		p.e.send(s.body(f, i == len(frames)-1 && !s.trailers))
		if !p.chunk(s, p.e.recv(), f) {
			return
		}
	}
	if s.trailers {
		p.e.send(s.trailer())
		p.trailer(s, p.e.recv())
	}
}

// duplex sends all without waiting and reads what comes until the end.
func (p *player) duplex(s side, headersOnly bool) {
	p.t.Helper()
	frames := s.frames
	if s.emptyEnd && !s.trailers && !headersOnly {
		frames = append(slices.Clone(frames), "")
	}
	for i, f := range frames {
		p.e.send(s.body(f, i == len(frames)-1 && !s.trailers))
	}
	if s.trailers {
		p.e.send(s.trailer())
	}
	if !p.header(s, p.e.recv()) || headersOnly {
		return
	}
	for {
		r := p.e.recv()
		if s.trailers && s.trailReply(r) {
			p.trailer(s, r)
			return
		}
		b := s.bodyReply(r)
		if b == nil {
			p.t.Fatalf("got %v, want a piece of the body", r)
		}
		piece := b.GetResponse().GetBodyMutation().GetStreamedResponse()
		if piece == nil {
			p.t.Fatalf("got %v, want a streamed response", r)
		}
		if len(piece.GetBody()) > maxPiece {
			p.t.Errorf("got a piece of %d bytes, want %d at most", len(piece.GetBody()), maxPiece)
		}
		*s.to += string(piece.GetBody())
		if piece.GetEndOfStream() {
			if s.trailers {
				p.t.Error("got the end of stream before the trailers")
			}
			return
		}
	}
}

// header takes the reply to headers and tells whether the exchange goes on.
func (p *player) header(s side, r *extproc.ProcessingResponse) bool {
	p.t.Helper()
	if p.immediate(r) {
		return false
	}
	h := s.headerReply(r)
	if h == nil {
		p.t.Fatalf("got %v, want the reply to the headers", r)
	}
	p.mutate(s, r, h.GetResponse())
	return true
}

// chunk takes the reply to one body message.
func (p *player) chunk(s side, r *extproc.ProcessingResponse, frame string) bool {
	p.t.Helper()
	if p.immediate(r) {
		return false
	}
	b := s.bodyReply(r)
	if b == nil {
		p.t.Fatalf("got %v, want the reply to a body", r)
	}
	c := b.GetResponse()
	if c.GetHeaderMutation() != nil && s.mode == streamed {
		p.t.Errorf("got %v, which Envoy ignores in STREAMED", c.GetHeaderMutation())
	}
	p.mutate(s, r, c)
	if m := c.GetBodyMutation(); m != nil {
		if m.GetStreamedResponse() != nil {
			p.t.Error("got a streamed response outside FULL_DUPLEX_STREAMED")
		}
		frame = string(m.GetBody())
	}
	*s.to += frame
	return true
}

func (p *player) trailer(s side, r *extproc.ProcessingResponse) {
	p.t.Helper()
	if !s.trailReply(r) {
		p.t.Fatalf("got %v, want the reply to trailers", r)
	}
	p.note(r)
}

func (p *player) immediate(r *extproc.ProcessingResponse) bool {
	p.seen.immediate = r.GetImmediateResponse()
	if p.seen.immediate != nil {
		p.note(r)
	}
	return p.seen.immediate != nil
}

// mutate applies the header mutation of c.
func (p *player) mutate(s side, r *extproc.ProcessingResponse, c *extproc.CommonResponse) {
	p.t.Helper()
	p.note(r)
	p.seen.cleared = p.seen.cleared || c.GetClearRouteCache()
	p.seen.removed = append(p.seen.removed, c.GetHeaderMutation().GetRemoveHeaders()...)
	for _, h := range c.GetHeaderMutation().GetSetHeaders() {
		if h.GetHeader().GetValue() != "" || h.GetAppendAction() != 2 {
			p.t.Errorf("got %v, want a raw value that overwrites", h)
		}
		name := h.GetHeader().GetKey()
		if _, twice := s.set[name]; twice {
			p.t.Errorf("%s is set twice", name)
		}
		s.set[name] = string(h.GetHeader().GetRawValue())
	}
}

// note keeps the dynamic metadata of r.
func (p *player) note(r *extproc.ProcessingResponse) {
	for ns, v := range r.GetDynamicMetadata().GetFields() {
		for k, v := range v.GetStructValue().GetFields() {
			p.seen.metadata[ns+"/"+k] = v.GetStringValue()
		}
	}
}

package processor

import (
	"bytes"
	"net/http"

	"github.com/inferspan/inferspan/processor/hide"
	"github.com/inferspan/inferspan/processor/restore"
	"github.com/inferspan/inferspan/processor/wire"
)

// countUnrestored counts answers whose client sees the servers' name of a model.
const countUnrestored = "model_not_restored"

// edits are what changes in a response, one after the other. Each may be nil.
type edits struct {
	hider    *hide.Hider     // of usage that we asked for
	restorer *restore.Editor // of the model's name
	// plain is what hider leaves, out what restorer does; both are used again.
	plain, out []byte
	// sized: the server said the answer's length.
	sized bool
}

func (e *edits) edited() bool { return e.hider != nil || e.restorer != nil }

// write returns what the client gets of a frame, and of those before; after the
// last one nothing is held back. It is valid until the next call.
func (e *edits) write(frame []byte, last bool) []byte {
	if e.hider != nil {
		e.plain = e.hider.Write(e.plain[:0], frame)
		if last {
			e.plain = e.hider.Close(e.plain)
		}
		frame = e.plain
	}
	if e.restorer != nil {
		e.out = e.restorer.Write(e.out[:0], frame)
		if last {
			e.out = e.restorer.Close(e.out)
		}
		frame = e.out
	}
	return frame
}

// seesAnswer tells whether the response's body comes to this filter in a mode in
// which it can be edited.
func (x *exchange) seesAnswer() bool { return !x.observe && x.responseMode != wire.ModeNone }

// beginEdits begins to edit the response if there is something in it that is not
// the client's: usage that we asked for, or a model's name that we gave it.
func (x *exchange) beginEdits(h *responseHead) {
	r, s := &x.request, &x.response
	if r.rewriter != nil {
		r.usage = r.rewriter.Asked()
	}
	if x.foreign || x.observe {
		return
	}
	hides := r.usage.Any() && s.stream && h.status == http.StatusOK
	restores := r.alias != "" && h.status/100 == 2 && (s.stream || isMedia(h.contentType, "application/json"))
	// The server was told not to code it. Out of a coded answer nothing can be cut.
	if h.contentEncoding != "" && h.contentEncoding != identity {
		if hides {
			x.count(countUnhidden)
		}
		if restores {
			x.count(countUnrestored)
		}
		return
	}
	s.sized = h.hasLength
	if hides {
		s.hider = hide.New(r.dialect, r.usage, 0)
	}
	if restores {
		s.restorer = restore.New(r.dialect, r.alias, s.stream)
	}
}

// sendEdited answers a response frame with what the client is to get of it, and
// of those before. With BUFFERED there is one frame, and its length is ours to
// tell where the server's was told.
func (x *exchange) sendEdited(m *wire.Message) error {
	s := &x.response
	large := s.overflows()
	one := x.responseMode == wire.ModeBuffered || x.responseMode == wire.ModeBufferedPartial
	body := s.write(m.Body, m.EndOfStream || one)
	if s.overflows() != large {
		x.count(countUnhidden)
	}
	if x.responseMode == wire.ModeFullDuplex {
		return x.echo(m.Phase, body, m.EndOfStream)
	}
	if !bytes.Equal(body, m.Body) {
		x.reply.HasBody, x.reply.Body = true, body
		if x.responseMode == wire.ModeBuffered && s.sized {
			x.reply.Set = append(x.reply.Set, contentLength(len(body)))
		}
	}
	return x.send(m.Phase)
}

// overflows is how many events were too large to be edited.
func (e *edits) overflows() int64 {
	if e.hider == nil {
		return 0
	}
	return e.hider.Overflows()
}

// flushEdits sends what is held of an edited response whose end is its trailers.
// In STREAMED there is no message left to carry it: what is unfinished is lost
// then.
func (x *exchange) flushEdits() error {
	s := &x.response
	if !s.edited() {
		return nil
	}
	rest := s.write(nil, true)
	if x.responseMode == wire.ModeFullDuplex {
		return x.echo(wire.ResponseBody, rest, false)
	}
	if len(rest) > 0 {
		x.count(countHeldLost)
	}
	return nil
}

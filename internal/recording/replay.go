package recording

import (
	"net/http"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// Replay plays a recording through the measuring core, request and response
// cut by c, and returns the record.
//
// A recording has no wall clock: the record starts at the response's date
// header, which is right to a second or so, and without one at no time that is
// known. Its request id is the request's x-request-id.
func Replay(rec *Recording, c Cut) *meter.Record {
	scanner := dialect.NewScanner(dialect.ForPath(rec.Request.Path), rec.Request.Headers.Get("content-type"))
	for part := range c.Frames([]Piece{{Data: rec.Request.Body}}) {
		scanner.Write(part.Data)
	}
	scanner.Close()

	m := meter.New(meter.Start{
		At:        rec.start(),
		Source:    meter.StartArrival,
		RequestID: rec.Request.Headers.Get("x-request-id"),
		Method:    rec.Request.Method,
		Path:      rec.Request.Path,
	}, meter.Options{})
	m.Ask(scanner.Request())
	if h := rec.Head; h != nil {
		m.Headers(h.At, h.Status, h.Headers.Get("content-type"), h.Headers.Get("content-encoding"))
	}
	for frame := range c.Frames(rec.Pieces) {
		m.Observe(frame.At, frame.Data)
	}
	r := m.Close(rec.EndAt, rec.End.cause())
	r.Name = rec.Name
	return r
}

// start returns the wall clock that the record begins with, zero where nothing
// tells it.
func (rec *Recording) start() time.Time {
	if rec.Head != nil {
		if at, err := http.ParseTime(rec.Head.Headers.Get("date")); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// cause returns what an end says of whose doing it was.
func (e End) cause() meter.Cause {
	switch e {
	case EndEOF:
		return meter.CauseEnd
	case EndClientClosed:
		return meter.CauseClient
	case EndTruncated, EndReset:
		return meter.CauseUpstream
	case EndTimeout:
		return meter.CauseTimeout
	case EndLost:
		return meter.CauseLost
	case EndAborted:
	}
	return meter.CauseAborted
}

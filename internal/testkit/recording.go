package testkit

import (
	"fmt"

	"github.com/inferspan/inferspan/internal/recording"
)

// ReadRecording reads a recorded exchange as the call that was made and the
// script that answers it. What the client closed, the server holds open.
func ReadRecording(file string) (Call, Script, error) {
	rec, err := recording.ReadFile(file)
	if err != nil {
		return Call{}, Script{}, err
	}
	if rec.Head == nil {
		return Call{}, Script{}, fmt.Errorf("playing %s: no response came", file)
	}
	call := Call{Method: rec.Request.Method, Path: rec.Request.Path, Header: headers(rec.Request.Headers)}
	if len(rec.Request.Body) > 0 {
		call.Body = rec.Request.Body
	}
	s := Script{
		Name: rec.Name, HeadAt: rec.Head.At, Status: rec.Head.Status, Header: headers(rec.Head.Headers),
		EndAt: rec.EndAt, End: endOf(rec.End),
	}
	for _, p := range rec.Pieces {
		s.Pieces = append(s.Pieces, Piece{At: p.At, Data: p.Data})
	}
	return call, s, nil
}

func endOf(e recording.End) End {
	switch e {
	case recording.EndTruncated, recording.EndAborted, recording.EndLost:
		return EndTruncated
	case recording.EndReset:
		return EndReset
	case recording.EndClientClosed, recording.EndTimeout:
		return EndHold
	default:
		return EndEOF
	}
}

func headers(all recording.Headers) []Header {
	out := make([]Header, len(all))
	for i, h := range all {
		out[i] = Header(h)
	}
	return out
}

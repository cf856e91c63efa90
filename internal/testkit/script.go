package testkit

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"time"
)

// End is how a script's response ends.
type End string

// The ends. EndHold keeps the response open until the client hangs up.
const (
	EndEOF       End = "eof"
	EndTruncated End = "truncated" // the connection closes before the response's end
	EndReset     End = "reset"     // the connection is reset
	EndHold      End = "hold"
)

// Header is one header line.
type Header struct{ Name, Value string }

// Script is a response as a model server gives it: what, and when. Times count
// from the moment when the whole request has been read; zero means at once.
type Script struct {
	Name     string
	Status   int
	HeadAt   time.Duration
	Header   []Header
	Pieces   []Piece
	Trailer  []Header
	End      End
	EndAt    time.Duration
	EndAfter <-chan struct{} // if set, the end also waits for it
}

// Piece is a part of the body that goes out by itself.
type Piece struct {
	At   time.Duration
	Data []byte
	// After, if set, holds the piece back until it is closed.
	After <-chan struct{}
}

// Scaled returns the script played speed times as fast; with 0, as fast as
// possible.
func (s Script) Scaled(speed float64) Script {
	scale := func(d time.Duration) time.Duration {
		if speed <= 0 {
			return 0
		}
		return time.Duration(float64(d) / speed)
	}
	s.HeadAt, s.EndAt = scale(s.HeadAt), scale(s.EndAt)
	pieces := make([]Piece, len(s.Pieces))
	for i, p := range s.Pieces {
		p.At = scale(p.At)
		pieces[i] = p
	}
	s.Pieces = pieces
	return s
}

// Body returns all pieces in one.
func (s Script) Body() []byte {
	var b []byte
	for _, p := range s.Pieces {
		b = append(b, p.Data...)
	}
	return b
}

// responseID finds the ids that a response carries: "id" of chat, completions,
// responses and messages, "request_id" of generate. Ids of parts of a response
// match too, and are as much its own.
var responseID = regexp.MustCompile(`"(?:id|request_id|item_id)": ?"([A-Za-z0-9_.-]*?)([0-9a-f]{8,})"`)

// FreshIDs returns the script with the ids of its body replaced by random ones
// of the same length, each by the same one throughout, so that two exchanges
// that play one recording can be told apart. Pieces keep their lengths.
func (s Script) FreshIDs() Script {
	body := s.Body()
	fresh := map[string]string{}
	for _, m := range responseID.FindAllSubmatch(body, -1) {
		if old := string(m[2]); fresh[old] == "" {
			fresh[old] = randomHex(len(old))
		}
	}
	for _, m := range responseID.FindAllSubmatchIndex(body, -1) {
		if id, ok := fresh[string(body[m[4]:m[5]])]; ok {
			copy(body[m[4]:m[5]], id)
		}
	}
	pieces := make([]Piece, len(s.Pieces))
	for i, p := range s.Pieces {
		n := len(p.Data)
		p.Data, body = body[:n:n], body[n:]
		pieces[i] = p
	}
	s.Pieces = pieces
	return s
}

func randomHex(n int) string {
	b := make([]byte, (n+1)/2)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)[:n]
}

// Package handover carries what the deciding filter of a split deployment knows
// of an exchange to the observing one, in a request header: its place in a
// trace, its start, what was asked and where it goes. It carries no content.
//
//	1.<payload>[.<signature>]
//
// The payload is binary, in base64url: its form is in payload.go. A reader takes
// the version that it writes and no other.
package handover

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// Header is the request header that carries a hand-over.
const Header = "x-inferspan-ctx"

// MaxLen is the largest length of its value, in bytes.
const MaxLen = 4 << 10

// version is raised with every change of the payload's form.
const version = "1"

// Handover is what is handed over.
type Handover struct {
	Trace meter.Trace
	// Start is the origin, and Source says whose clock it is. Elapsed is how long
	// after it the decision was sent, by the deciding side's clock.
	Start   time.Time
	Source  meter.StartSource
	Elapsed time.Duration
	// Wanted is what a trusted client wants of the exchange.
	Wanted meter.Thresholds
	// Asked is what was asked, but for the dialect, which follows from the path.
	// Options: the request has stream options of its own. Usage is what we asked
	// for besides.
	Asked   dialect.Request
	Options bool
	Usage   dialect.Asked
	// Route is the decision; what is known only after it is not carried.
	Route meter.Route
	// Tokens are those of the prompt, as estimated for the endpoint's load, and
	// PromptBytes how much of the body it takes, 0 where that is not known whole.
	Tokens, PromptBytes int
}

// Why a value can't be used.
var (
	// ErrMalformed: it is none of ours, or was changed on its way.
	ErrMalformed = errors.New("malformed hand-over")
	// ErrVersion: another release wrote it.
	ErrVersion = errors.New("hand-over of another version")
	// ErrUnsigned: there is a key, and the value has no signature.
	ErrUnsigned = errors.New("unsigned hand-over")
	// ErrForged: its signature is not by the key and for this request.
	ErrForged = errors.New("wrongly signed hand-over")
)

// Key signs hand-overs and verifies them, where clients could forge one. An
// empty Key does neither.
type Key []byte

// encoding has one spelling for each payload.
var encoding = base64.RawURLEncoding.Strict()

// Encode returns the value of the header for the request with the id requestID,
// to which its signature is bound. What does not fit is left out: first the
// candidates, then the tracestates.
func (k Key) Encode(h *Handover, requestID string) string {
	room := MaxLen
	if len(k) > 0 {
		room -= 1 + encoding.EncodedLen(sha256.Size)
	}
	whole := *h
	value := encode(whole)
	for _, cut := range []func(*Handover){
		func(h *Handover) { h.Route.Candidates = nil },
		func(h *Handover) { h.Trace.LinkState = "" },
		func(h *Handover) { h.Trace.State = "" },
		func(h *Handover) { h.Asked.Model, h.Asked.HasModel = "", false },
	} {
		if len(value) <= room {
			break
		}
		cut(&whole)
		value = encode(whole)
	}
	if len(k) == 0 {
		return value
	}
	return value + "." + encoding.EncodeToString(k.sign(value, requestID))
}

func encode(h Handover) string {
	c := coder{b: make([]byte, 0, 384)}
	c.fields(&h)
	return string(encoding.AppendEncode([]byte(version+"."), c.b))
}

// sign returns the signature of a value without one.
func (k Key) sign(value, requestID string) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(value)) // a hash takes all that it gets
	mac.Write([]byte{0})     // stands in neither
	mac.Write([]byte(requestID))
	return mac.Sum(nil)
}

// Decode reads the value of the header of the request with the id requestID. Its
// error is one of those above. How long it takes tells nothing of the key.
func (k Key) Decode(value, requestID string) (Handover, error) {
	v, rest, found := strings.Cut(value, ".")
	switch {
	case !found || v == "" || len(v) > 3 || strings.Trim(v, "0123456789") != "":
		return Handover{}, ErrMalformed
	case len(value) > MaxLen || strings.ContainsAny(value, "\r\n"): // base64 skips over them
		return Handover{}, ErrMalformed
	case v != version:
		return Handover{}, ErrVersion
	}
	payload, signature, signed := strings.Cut(rest, ".")
	if len(k) > 0 {
		if !signed {
			return Handover{}, ErrUnsigned
		}
		got, err := encoding.DecodeString(signature)
		if err != nil || !hmac.Equal(got, k.sign(v+"."+payload, requestID)) {
			return Handover{}, ErrForged
		}
	}
	b, err := encoding.DecodeString(payload)
	if err != nil {
		return Handover{}, ErrMalformed
	}
	var h Handover
	c := coder{b: b, reading: true}
	c.fields(&h)
	if c.failed || len(c.b) > 0 {
		return Handover{}, ErrMalformed
	}
	return h, nil
}

package meter

import (
	"errors"
	"io"
	"time"

	"github.com/inferspan/inferspan/processor/coding"
)

// A body in a content coding (definitions 1): what is read is what it stands
// for, what is counted and timed are the frames that came.

// openCoding gets ready for a body with this content-encoding.
func (r *response) openCoding(contentEncoding string) {
	if coding.Identity(contentEncoding) {
		return
	}
	var err error
	r.coding, err = coding.New(contentEncoding, coding.Limits{})
	r.opaque = err != nil
}

func (r *response) closeCoding() {
	if r.coding != nil {
		r.coding.Close()
		r.coding = nil
	}
}

// decode reads what a frame brings of a body in a content coding.
func (m *Meter) decode(at time.Duration, frame []byte) Milestone {
	r := &m.response
	r.coding.Push(frame)
	reached := m.readDecoded(at)
	if r.coding.Err() != nil {
		r.giveUp()
	}
	return reached
}

func (m *Meter) readDecoded(at time.Duration) (reached Milestone) {
	d := m.response.coding
	for plain, ok := d.Next(); ok; plain, ok = d.Next() {
		reached |= m.read(at, plain)
	}
	return reached
}

// endCoding reads what the coding held back: it came with the last frame, however
// the exchange ended. A body that breaks off was read as far as it came, unless
// that is nowhere.
func (m *Meter) endCoding() {
	r := &m.response
	if r.coding == nil {
		return
	}
	r.coding.End()
	m.readDecoded(r.lastFrame)
	err := r.coding.Err()
	if err != nil && (r.events == 0 || !errors.Is(err, io.ErrUnexpectedEOF)) {
		r.giveUp()
	}
	r.closeCoding()
}

// giveUp makes the rest of the body opaque, for good.
func (r *response) giveUp() {
	r.closeCoding()
	r.opaque = true
}

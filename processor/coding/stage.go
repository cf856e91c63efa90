package coding

import (
	"errors"
	"io"
	"sync"
)

// stage takes one coding off.
type stage struct {
	kind    kind
	limits  Limits
	inlet   inlet
	decoder decoder
	plain   io.Reader // nil until the first Read
}

// decoder is a library's decoder, which can be used for one body after another.
type decoder interface {
	// begin returns the reader of what in holds without the coding. It may read
	// in already.
	begin(in *inlet, l Limits) (io.Reader, error)
	// end lets go of what only one body needs.
	end()
}

// pools keep the stages between bodies: making one costs tens of kilobytes.
var pools [kinds]sync.Pool

// newStage returns a stage that takes k off src.
func newStage(k kind, src io.Reader, l Limits) *stage {
	s, ok := pools[k].Get().(*stage)
	if !ok {
		s = &stage{kind: k, decoder: newDecoder(k)}
	}
	s.limits = l
	s.inlet.src = src
	return s
}

// release gives the stage back, at whatever point of its body.
func (s *stage) release() {
	s.decoder.end()
	s.plain = nil
	// The libraries keep the inlet, and through it nothing of this body.
	s.inlet = inlet{}
	pools[s.kind].Put(s)
}

func (s *stage) Read(p []byte) (int, error) {
	if s.plain == nil {
		plain, err := s.decoder.begin(&s.inlet, s.limits)
		if err != nil {
			return 0, err
		}
		s.plain = plain
	}
	n, err := s.plain.Read(p)
	switch {
	case !errors.Is(err, io.EOF):
		return n, err
	case n > 0:
		return n, nil // the end comes again, alone
	default:
		return 0, s.inlet.end()
	}
}

// inlet is where a decoder reads from. It reads ahead by less than is handed
// out between two looks at the limits, and nothing that has not come yet.
type inlet struct {
	src  io.Reader
	err  error // of src, after what is in buf
	r, w int   // what of buf is to be read
	buf  [512]byte
}

// fill reads more behind what is there; it returns with at least one byte more
// or an error. It must have room.
func (in *inlet) fill() error {
	if in.r > 0 {
		in.w = copy(in.buf[:], in.buf[in.r:in.w])
		in.r = 0
	}
	for before := in.w; in.w == before; {
		if in.err != nil {
			return in.err
		}
		var n int
		n, in.err = in.src.Read(in.buf[in.w:])
		in.w += n
	}
	return nil
}

// peek returns the next n bytes, or fewer where src ends, and leaves them.
func (in *inlet) peek(n int) ([]byte, error) {
	for in.w-in.r < n {
		if err := in.fill(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return in.buf[in.r:min(in.w, in.r+n)], nil
}

func (in *inlet) Read(p []byte) (int, error) {
	if in.r == in.w {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// ReadByte makes decoders read no further than they need.
func (in *inlet) ReadByte() (byte, error) {
	if in.r == in.w {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	b := in.buf[in.r]
	in.r++
	return b, nil
}

// end returns io.EOF if nothing follows; it waits for that.
func (in *inlet) end() error {
	if in.r < in.w {
		return errTrailing
	}
	if err := in.fill(); err != nil {
		return err
	}
	return errTrailing
}

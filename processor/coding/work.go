package coding

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	// chunk is the size of the pieces of plain bytes.
	chunk = 4 << 10
	// quantum is how much of the body is handed to the codings at most before
	// the limits are looked at again. Its bounds stand at the same bytes however
	// the body is cut, so that the limit stops it at the same byte.
	quantum = 4 << 10
	// grace is how much may come out at any ratio.
	grace = 4 << 20
)

// errStopped makes the codings return after Close.
var errStopped = errors.New("stopped")

// errTrailing is of bytes after the end of what a coding describes.
var errTrailing = errors.New("bytes after the end of the content coding")

// work is what the coroutine does, and what it shares with the Decoder: only
// one of them runs at a time.
type work struct {
	kinds  []kind
	limits Limits

	in    []byte // what was pushed and not read
	ended bool   // nothing is pushed any more
	err   error  // what stopped the decoding
	fault error  // of the first coding that had one: the next may name it otherwise
	done  bool   // the coroutine has returned

	stopped bool // by Close

	given int64 // bytes of the body read so far
	yield func([]byte) bool
}

// run decodes the body. It yields plain bytes, and nil to wait for more input.
func (w *work) run(yield func([]byte) bool) {
	w.yield = yield
	var stages []*stage
	defer func() {
		w.done, w.yield = true, nil
		if p := recover(); p != nil {
			// A fault of a library costs what is read of this body, not its
			// exchange. What was in use is not used again.
			w.err = fmt.Errorf("decode: panic: %v", p)
			return
		}
		for _, s := range stages {
			s.release()
		}
	}()
	var src io.Reader = w
	for _, k := range slices.Backward(w.kinds) {
		s := newStage(k, src, w.limits)
		stages = append(stages, s)
		src = &limited{work: w, src: s}
	}
	w.copy(src, yield)
}

// copy yields what src has until it ends.
func (w *work) copy(src io.Reader, yield func([]byte) bool) {
	buf := make([]byte, chunk)
	for {
		n, err := src.Read(buf)
		if n > 0 && !yield(buf[:n]) {
			return
		}
		switch {
		case w.stopped, errors.Is(err, io.EOF):
			return
		case err != nil:
			w.err = fmt.Errorf("decode: after %d bytes: %w", w.given, w.fault)
			return
		}
	}
}

// Read reads the body as it was pushed. Where nothing is left, the coroutine
// rests here.
func (w *work) Read(p []byte) (int, error) {
	for len(w.in) == 0 {
		if w.ended {
			return 0, io.EOF
		}
		if w.stopped || !w.yield(nil) {
			w.stopped = true
			return 0, errStopped
		}
	}
	room := int(quantum - w.given%quantum)
	n := copy(p[:min(len(p), room)], w.in)
	w.in = w.in[n:]
	w.given += int64(n)
	return n, nil
}

// allowed returns how much may be decoded of what is read so far.
func (w *work) allowed() int64 {
	read := (w.given + quantum - 1) / quantum * quantum
	return min(w.limits.MaxOutput, max(grace, w.limits.MaxRatio*read))
}

// limited is what one coding gives, up to the limits: in a list the first ones
// could else work without end for nothing.
type limited struct {
	work *work
	src  io.Reader
	out  int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.src.Read(p)
	allowed := l.work.allowed()
	if l.out += int64(n); l.out > allowed {
		n -= int(l.out - allowed)
		l.out = allowed
		err = fmt.Errorf("%w of %d bytes", ErrLimit, allowed)
	}
	if err != nil && !errors.Is(err, io.EOF) && l.work.fault == nil {
		l.work.fault = err
	}
	return n, err
}

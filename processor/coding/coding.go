// Package coding takes the content codings of HTTP off a copy of a body, as its
// bytes pass: gzip, deflate, br, zstd, and lists of them.
//
//	d, err := coding.New(contentEncoding, coding.Limits{})
//	d.Push(frame)                          // any bytes, cut anywhere
//	for plain, ok := d.Next(); ok; plain, ok = d.Next() { ... }
//	d.End()                                // no more comes; Next gives the rest
//	d.Err()                                // what stopped it, if anything did
//	d.Close()                              // on every way out
//
// What a server has flushed comes out with the last of its bytes, however they
// are cut. Each byte is decoded once. How the bytes are cut changes nothing in
// what comes out, up to each byte and in the end; but of a br body that is
// broken, what was not flushed before the fault comes out only where a cut lies
// between.
//
// The decoders of the libraries pull their input. They run as a coroutine that
// is resumed by Next and rests where input is lacking; it is no thread of its
// own and runs nothing while nobody is in Next.
//
// # Memory
//
// A decoder that waits for its next frame holds the window that its server
// asked for: 32 KiB with gzip and deflate, with br as much as was sent so far
// up to the window, with zstd the whole window from the first byte (2 MiB at
// zstd's usual level 3). To this come about 20 KiB with gzip and deflate, 80
// KiB with br and 450 KiB with zstd. TestMemory holds these numbers.
package coding

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
)

// ErrUnsupported is of a coding that is not known, or of more than two.
var ErrUnsupported = errors.New("content coding not supported")

// ErrLimit is of a body that grows beyond a limit as it is decoded.
var ErrLimit = errors.New("decoded body exceeds its limit")

// Limits bound what one body may cost; fields that are 0 take the defaults.
type Limits struct {
	// MaxOutput is the number of decoded bytes; 0: 1 GiB.
	MaxOutput int64
	// MaxRatio is how many decoded bytes one byte of the body may stand for on
	// average, from 4 MiB of them up; 0: 200. A server that flushes each event
	// stays below 50.
	MaxRatio int64
	// MaxWindow is the largest window that a body may ask for, in bytes, at
	// least 1 KiB; 0: 8 MiB, the most that zstd may use in HTTP (RFC 9659).
	MaxWindow uint64
}

const (
	defaultMaxOutput = 1 << 30
	defaultMaxRatio  = 200
	defaultMaxWindow = 8 << 20
	// maxCodings is the longest list: nobody applies more on purpose, and each
	// has a window.
	maxCodings = 2
)

func (l Limits) withDefaults() Limits {
	if l.MaxOutput == 0 {
		l.MaxOutput = defaultMaxOutput
	}
	if l.MaxRatio == 0 {
		l.MaxRatio = defaultMaxRatio
	}
	if l.MaxWindow == 0 {
		l.MaxWindow = defaultMaxWindow
	}
	return l
}

// Identity tells that a body with this content-encoding stands as it is.
func Identity(contentEncoding string) bool {
	kinds, err := parse(contentEncoding)
	return err == nil && len(kinds) == 0
}

// parse returns the codings of a list, in the order in which they were applied.
func parse(contentEncoding string) ([]kind, error) {
	var kinds []kind
	for name := range strings.SplitSeq(contentEncoding, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		switch name {
		case "", "identity":
			continue
		}
		k, ok := kindOf(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %.32q", ErrUnsupported, name)
		case len(kinds) == maxCodings:
			return nil, fmt.Errorf("%w: a list of more than %d", ErrUnsupported, maxCodings)
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// Decoder decodes one body. It is not safe for concurrent use.
//
// One that is not closed is freed when it is collected.
type Decoder struct {
	work *work
	next func() ([]byte, bool) // nil before the first byte
	stop func()
	// guard frees what work holds when the Decoder is collected.
	guard  runtime.Cleanup
	closed bool
}

// New returns a Decoder for a body with this content-encoding, a list in the
// order of application; its codings are taken off from the last to the first.
// The error is ErrUnsupported, and nothing is to be closed then.
func New(contentEncoding string, l Limits) (*Decoder, error) {
	kinds, err := parse(contentEncoding)
	if err != nil {
		return nil, err
	}
	return &Decoder{work: &work{kinds: kinds, limits: l.withDefaults()}}, nil
}

// Push hands over the next bytes of the body, which must not change until Next
// has said that there is no more: it has to, before the next Push. After an
// error, and after End, they are ignored.
func (d *Decoder) Push(p []byte) {
	if d.closed || d.work.ended || d.work.err != nil || len(p) == 0 {
		return
	}
	d.work.in = p
	if d.next == nil {
		d.next, d.stop = iter.Pull(d.work.run)
		// run has work and not the Decoder, which can be collected.
		d.guard = runtime.AddCleanup(d, func(stop func()) { stop() }, d.stop)
	}
}

// Next returns decoded bytes, valid until the next call of any method; ok is
// false where no more can be decoded yet.
func (d *Decoder) Next() (plain []byte, ok bool) {
	if d.next == nil || d.closed || d.work.done {
		return nil, false
	}
	plain, ok = d.next()
	if !ok {
		// The body is over, or broken.
		d.work.in = nil
	}
	return plain, ok && plain != nil
}

// End says that the body is over. What the codings held back is then in Next;
// after it Err says whether the body was whole.
func (d *Decoder) End() {
	d.work.ended = true
}

// Err returns what stopped the decoding, nil while nothing has: ErrLimit, after
// End io.ErrUnexpectedEOF for a body that breaks off, else the coding's fault.
// What came from Next before it is good.
func (d *Decoder) Err() error { return d.work.err }

// Close frees what the Decoder holds. It may be called again.
func (d *Decoder) Close() {
	if d.closed {
		return
	}
	d.closed = true
	if d.next != nil {
		d.guard.Stop()
		d.stop()
	}
}

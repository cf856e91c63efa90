package coding

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// kind is one content coding.
type kind uint8

const (
	kindGzip kind = iota
	kindDeflate
	kindBrotli
	kindZstd
	kinds
)

// kindOf returns the coding of this name, in lower case.
func kindOf(name string) (kind, bool) {
	switch name {
	case "gzip", "x-gzip":
		return kindGzip, true
	case "deflate":
		return kindDeflate, true
	case "br":
		return kindBrotli, true
	case "zstd":
		return kindZstd, true
	}
	return 0, false
}

func newDecoder(k kind) decoder {
	switch k {
	case kindGzip:
		return new(gzipDecoder)
	case kindDeflate:
		return new(deflateDecoder)
	case kindBrotli:
		return new(brotliDecoder)
	default:
		return new(zstdDecoder)
	}
}

// gzipDecoder reads one gzip member after the other. The library does that too,
// but holds back a member's last bytes until the next one's header came.
type gzipDecoder struct {
	reader gzip.Reader
	in     *inlet
}

func (d *gzipDecoder) begin(in *inlet, _ Limits) (io.Reader, error) {
	d.in = in
	err := d.member()
	return d, err
}

// member begins the next member; io.EOF says that there is none.
func (d *gzipDecoder) member() error {
	if err := d.reader.Reset(d.in); err != nil {
		return err
	}
	d.reader.Multistream(false)
	return nil
}

func (d *gzipDecoder) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	switch {
	case !errors.Is(err, io.EOF):
		return n, err
	case n > 0:
		return n, nil // the end comes again, alone
	default:
		return 0, d.member()
	}
}

func (d *gzipDecoder) end() {}

// deflateDecoder reads what goes by the name of deflate: the zlib format, as
// the RFC has it, and the bare one, as some servers send it.
type deflateDecoder struct{ zlib, bare resetter }

// resetter is what the readers of zlib and flate are, by their documentation.
type resetter interface {
	io.Reader
	Reset(in io.Reader, dict []byte) error
}

func (d *deflateDecoder) begin(in *inlet, _ Limits) (io.Reader, error) {
	head, err := in.peek(2)
	if err != nil {
		return nil, err
	}
	if !isZlib(head) {
		if d.bare == nil {
			d.bare, _ = flate.NewReader(in).(resetter)
			return d.bare, nil
		}
		return d.bare, d.bare.Reset(in, nil)
	}
	if d.zlib == nil {
		reader, err := zlib.NewReader(in)
		if err != nil {
			return nil, err
		}
		d.zlib, _ = reader.(resetter)
		return d.zlib, nil
	}
	return d.zlib, d.zlib.Reset(in, nil)
}

// isZlib tells a zlib header from the bare format: there the first block would
// have to be stored, with padding that nobody writes.
func isZlib(head []byte) bool {
	const deflate, maxWindow = 8, 7
	return len(head) == 2 && head[0]&0x0f == deflate && head[0]>>4 <= maxWindow &&
		(uint(head[0])<<8|uint(head[1]))%31 == 0
}

func (d *deflateDecoder) end() {}

type brotliDecoder struct{ reader brotli.Reader }

func (d *brotliDecoder) begin(in *inlet, l Limits) (io.Reader, error) {
	head, err := in.peek(1)
	if err != nil {
		return nil, err
	}
	if len(head) > 0 {
		if window := brotliWindow(head[0]); window > l.MaxWindow {
			return nil, fmt.Errorf("%w: a window of %d bytes, at most %d", ErrLimit, window, l.MaxWindow)
		}
	}
	return &d.reader, d.reader.Reset(in)
}

func (d *brotliDecoder) end() {}

// brotliWindow reads a body's window from its first byte (RFC 7932, 9.1). What
// is no window there is left to the decoder to refuse.
func brotliWindow(first byte) uint64 {
	long, short := first>>1&7, first>>4&7
	switch {
	case first&1 == 0:
		return 1 << 16
	case long > 0:
		return 1 << (17 + long)
	case short > 1:
		return 1 << (8 + short)
	default:
		return 1 << 17
	}
}

type zstdDecoder struct{ reader *zstd.Decoder }

func (d *zstdDecoder) begin(in *inlet, l Limits) (_ io.Reader, err error) {
	window := zstd.WithDecoderMaxWindow(l.MaxWindow)
	if d.reader != nil {
		return d.reader, d.reader.ResetWithOptions(in, window)
	}
	// With a concurrency of 1 it decodes where it is called, without goroutines.
	d.reader, err = zstd.NewReader(in, window, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	return d.reader, err
}

func (d *zstdDecoder) end() {
	if d.reader != nil {
		// Without a source it can't fail.
		_ = d.reader.Reset(nil)
	}
}

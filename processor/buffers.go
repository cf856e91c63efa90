package processor

import (
	"math/bits"
	"sync"
)

// The sizes of the buffers that are kept for use again, as powers of two: what
// is smaller is not worth it, and what is larger is rare.
const (
	minBuffer = 11
	maxBuffer = 22
)

// buffers is a pool of memory for messages. Unlike the one of grpc-go it does not
// clear what it hands out, as all of it is written to, and its sizes are close
// together: clearing 1 MiB for a prompt of 220 KB costs more than reading it.
type buffers struct {
	pools [maxBuffer - minBuffer + 1]sync.Pool
}

var bodies = new(buffers)

// Get returns n bytes of any content.
func (p *buffers) Get(n int) *[]byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minBuffer)
	if class > maxBuffer {
		b := make([]byte, n)
		return &b
	}
	if b, ok := p.pools[class-minBuffer].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<class)
	return &b
}

// Put takes back what Get returned.
func (p *buffers) Put(b *[]byte) {
	class := bits.Len(uint(cap(*b))) - 1
	if class < minBuffer || class > maxBuffer || cap(*b) != 1<<class {
		return
	}
	p.pools[class-minBuffer].Put(b)
}

package recording

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Cut says how the pieces of a recording are cut into frames. Cutting only
// splits pieces, it never joins them: each part keeps its piece's time. The
// zero Cut leaves them as recorded.
type Cut struct {
	size   int // bytes a part; 0: not by size
	random bool
	seed   uint64
}

// maxRandom is the largest part that a random cut makes: so small that most
// events are cut, so large that some are not.
const maxRandom = 512

// ParseCut reads the value of the flag --cut: frames as recorded, bytes one
// byte a part, a number of bytes, or random:SEED.
func ParseCut(s string) (Cut, error) {
	switch s {
	case "frames":
		return Cut{}, nil
	case "bytes":
		return Cut{size: 1}, nil
	}
	if seed, ok := strings.CutPrefix(s, "random:"); ok {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return Cut{}, fmt.Errorf("cut %q: the seed must be a whole number from 0 up", s)
		}
		return Cut{random: true, seed: n}, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return Cut{}, fmt.Errorf("cut %q: must be frames, bytes, a number of bytes from 1 up, or random:SEED", s)
	}
	return Cut{size: n}, nil
}

// Frames yields the pieces, cut. The same Cut cuts the same pieces the same way.
func (c Cut) Frames(pieces []Piece) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		next := c.sizes()
		for _, p := range pieces {
			rest := p.Data
			for {
				n := min(next(), len(rest))
				if !yield(Piece{p.At, rest[:n:n]}) {
					return
				}
				rest = rest[n:]
				if len(rest) == 0 {
					break
				}
			}
		}
	}
}

// sizes returns a function that gives the next part's size.
func (c Cut) sizes() func() int {
	switch {
	case c.random:
		random := rand.New(rand.NewPCG(c.seed, 0))
		return func() int { return 1 + random.IntN(maxRandom) }
	case c.size > 0:
		return func() int { return c.size }
	}
	const whole = int(^uint(0) >> 1)
	return func() int { return whole }
}

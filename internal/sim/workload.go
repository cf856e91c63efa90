package main

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// The conversations that the fleet's clients have. Half of the prompts share the
// instructions of some application, lengths are spread as lengths are, by
// factors, and a conversation goes on after its client has read and written.
const (
	applications  = 24
	bytesPerToken = 4
	minTokens     = 8
	thinking      = 8 * time.Second // median
)

// conversation is what one client says and is told. It has a source of its own,
// so that it is the same one whatever becomes of the others.
type conversation struct {
	rnd          *rand.Rand
	id           uint64
	instructions int // tokens
	application  uint64
	history      int // tokens that were said so far, without the instructions
	turns        int // that are left
}

// turn is the next request of a conversation.
type turn struct {
	tokens, output int
	blocks         []uint64 // of the server's cache
	prefix         []uint64 // as the processor's scanner hashes it
	promptBytes    int
}

// spread is a number that is as often above as below median; two thirds of them
// lie within the factor sigma of it.
func (c *conversation) spread(median, sigma float64) float64 {
	return median * math.Exp(c.rnd.NormFloat64()*math.Log(sigma))
}

// begin is a new conversation, by what rnd gives.
func begin(rnd *rand.Rand) *conversation {
	c := &conversation{id: rnd.Uint64()}
	c.rnd = rand.New(rand.NewPCG(c.id, 0))
	c.turns = 1 + c.rnd.IntN(6)
	if c.rnd.IntN(2) == 0 {
		c.application = 1 + uint64(c.rnd.IntN(applications))
		c.instructions = 256 + int(hash(c.application, 0)%2048)
	}
	return c
}

// next is c's next turn.
func (c *conversation) next() turn {
	c.history += max(minTokens, int(c.spread(120, 3)))
	c.turns--
	t := turn{tokens: c.instructions + c.history, output: min(max(minTokens, int(c.spread(60, 2))), 512)}
	t.blocks = c.chain(t.tokens, blockTokens, 1<<16)
	const scanned, most = 512, 8
	t.prefix = c.chain(t.tokens, scanned/bytesPerToken, most)
	t.promptBytes = t.tokens * bytesPerToken
	c.history += t.output
	return t
}

func (c *conversation) think() time.Duration {
	return time.Duration(c.spread(float64(thinking), 2))
}

// chain names the whole blocks of a prompt, size tokens each and most of them at
// most, by all that stands up to their end: of two conversations of one
// application they are the same as far as its instructions go.
func (c *conversation) chain(tokens, size, most int) []uint64 {
	n := min(tokens/size, most)
	out := make([]uint64, 0, n)
	h := uint64(0)
	for i := range n {
		owner := c.id
		if (i+1)*size <= c.instructions {
			owner = c.application
		}
		h = hash(h, owner+uint64(i)<<32)
		out = append(out, h)
	}
	return out
}

func hash(a, b uint64) uint64 {
	var in [16]byte
	binary.LittleEndian.PutUint64(in[:8], a)
	binary.LittleEndian.PutUint64(in[8:], b)
	h := fnv.New64a()
	_, _ = h.Write(in[:]) // it never fails
	return h.Sum64()
}

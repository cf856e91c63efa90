package main

import (
	"container/list"
	"math/rand/v2"
	"slices"
	"time"
)

// What a server of the fleet is set to, as vLLM's own defaults are.
const (
	maxSequences = 128  // max_num_seqs: so many run at once
	stepTokens   = 2048 // max_num_batched_tokens: so many a step takes
	blockTokens  = 16   // block_size
	serverBlocks = 8192 // num_gpu_blocks
)

// server is one model server: an engine that takes steps, in each of which every
// running sequence that has its prompt read gets one token, and what is left of
// the step's tokens reads prompts, first come first served. Blocks of prompts
// stay in the cache until the room is needed.
type server struct {
	clock *clock
	law   law
	rnd   *rand.Rand
	addr  string
	slow  float64 // its steps take so many times as long
	dead  bool

	waiting, running []*call
	stepping         bool
	held             int // blocks that running sequences hold
	cache            blockCache
}

// call is one request at a server.
type call struct {
	prompt []uint64 // its blocks, each named by all that stands before it too
	tokens int      // of the prompt
	output int      // how many are generated

	// The server's account.
	cached, read, made int

	first, done func() // of the first token, and of the end
	failed      func() // it broke off
}

func (c *call) blocks() int { return (c.tokens+c.output)/blockTokens + 1 }

// take gives the server a request. A dead one refuses it.
func (s *server) take(c *call) (taken bool) {
	if s.dead {
		return false
	}
	s.waiting = append(s.waiting, c)
	if !s.stepping {
		s.stepping = true
		s.clock.after(0, s.step)
	}
	return true
}

// die breaks off all that the server has.
func (s *server) die() {
	s.dead = true
	all := slices.Concat(s.running, s.waiting)
	s.running, s.waiting, s.held = nil, nil, 0
	for _, c := range all {
		c.failed()
	}
}

// step begins one step of the engine.
func (s *server) step() {
	if s.dead {
		return
	}
	s.admit()
	if len(s.running) == 0 {
		s.stepping = false
		return
	}
	budget, sequences, prompts := stepTokens, 0, 0
	for _, c := range s.running {
		if c.read == c.tokens && budget > 0 {
			budget--
			sequences++
		}
	}
	advance := make([]int, len(s.running))
	for i, c := range s.running {
		if c.read < c.tokens {
			n := min(c.tokens-c.read, budget)
			advance[i], budget, prompts = n, budget-n, prompts+n
			if n > 0 {
				sequences++
			}
		}
	}
	took := s.law.gaps[s.rnd.IntN(len(s.law.gaps))] +
		time.Duration(max(0, sequences-1))*s.law.sequence + time.Duration(prompts)*s.law.prefill
	batch := append([]*call(nil), s.running...)
	s.clock.after(time.Duration(float64(took)*s.slow), func() { s.finish(batch, advance) })
}

// admit lets the first of those that wait run, as long as there is room.
func (s *server) admit() {
	for len(s.waiting) > 0 && len(s.running) < maxSequences {
		c := s.waiting[0]
		if s.held+c.blocks() > serverBlocks && len(s.running) > 0 {
			return
		}
		s.waiting = s.waiting[1:]
		s.running = append(s.running, c)
		s.held += c.blocks()
		s.cache.shrink(serverBlocks - s.held)
		// The last token is always computed: its successor comes from it.
		c.cached = min(s.cache.match(c.prompt)*blockTokens, c.tokens-1)
		c.read = c.cached
	}
}

// finish ends a step that did advance to the sequences of batch.
func (s *server) finish(batch []*call, advance []int) {
	if s.dead {
		return
	}
	for i, c := range batch {
		if c.read < c.tokens {
			if c.read += advance[i]; c.read < c.tokens {
				continue
			}
			s.cache.add(c.prompt)
		}
		if c.made++; c.made == 1 {
			c.first()
		}
		if c.made == c.output {
			s.leave(c)
			c.done()
		}
	}
	s.step()
}

func (s *server) leave(c *call) {
	for i, r := range s.running {
		if r == c {
			s.running = append(s.running[:i], s.running[i+1:]...)
			break
		}
	}
	s.held -= c.blocks()
}

// blockCache holds blocks, and lets those go first that were used longest ago.
type blockCache struct {
	order list.List // of uint64, the last used first
	at    map[uint64]*list.Element
}

// match is how many of the leading blocks are there.
func (b *blockCache) match(blocks []uint64) int {
	for i, h := range blocks {
		e := b.at[h]
		if e == nil {
			return i
		}
		b.order.MoveToFront(e)
	}
	return len(blocks)
}

func (b *blockCache) add(blocks []uint64) {
	if b.at == nil {
		b.at = make(map[uint64]*list.Element)
	}
	for _, h := range blocks {
		if b.at[h] == nil {
			b.at[h] = b.order.PushFront(h)
		}
	}
	b.shrink(serverBlocks)
}

// shrink lets blocks go until at most n are left.
func (b *blockCache) shrink(n int) {
	for b.order.Len() > max(n, 0) {
		last := b.order.Back()
		delete(b.at, b.order.Remove(last).(uint64)) //nolint:forcetypeassert // add puts nothing else in
	}
}

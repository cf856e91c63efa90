package route

import "sync"

// cached is which blocks of prompts went to which endpoints lately: what their
// caches are thought to have. It is bounded: what was used longest ago gives way.
type cached struct {
	limit int // blocks

	mu    sync.Mutex
	at    map[uint64]int32 // by key, the place in nodes
	nodes []cachedNode     // a ring of all by last use, through nodes[0]
}

type cachedNode struct {
	key        uint64
	next, prev int32
}

// blockBytes is how much of a prompt one hash of Request.Prefix adds.
const blockBytes = 512

// maxCached is how many blocks are known. Each takes about 50 bytes.
const maxCached = 1 << 18

// deliver tells how many of the leading blocks of a prompt the endpoint of seed
// is thought to have in its cache for the model, and that it has all of them from
// now on.
func (c *cached) deliver(model string, seed uint64, prefix []uint64) (had int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := hash(model) ^ seed
	whole := true
	for _, block := range prefix {
		if c.use(mix(block^of)) && whole {
			had++
		} else {
			whole = false
		}
	}
	return had
}

// use makes key the one that was used last, and tells whether it was there.
func (c *cached) use(key uint64) bool {
	if c.at == nil {
		c.at = make(map[uint64]int32)
		c.nodes = append(c.nodes, cachedNode{})
	}
	i, known := c.at[key]
	switch {
	case known:
		c.unlink(i)
	case len(c.nodes) <= c.limit:
		i = int32(len(c.nodes))
		c.nodes = append(c.nodes, cachedNode{key: key})
		c.at[key] = i
	default:
		i = c.nodes[0].prev
		c.unlink(i)
		delete(c.at, c.nodes[i].key)
		c.nodes[i].key = key
		c.at[key] = i
	}
	first := c.nodes[0].next
	c.nodes[i].next, c.nodes[i].prev = first, 0
	c.nodes[0].next, c.nodes[first].prev = i, i
	return known
}

func (c *cached) unlink(i int32) {
	n := c.nodes[i]
	c.nodes[n.prev].next, c.nodes[n.next].prev = n.next, n.prev
}

// predict puts into d what m has yet to read of the prompt of q, and what is
// thought to be in its cache. It is delivered from now on.
func (r *Router) predict(m *member, q *Request, model string, d *Decision) {
	tokens := int64(float64(q.PromptBytes) / r.sizes.of(q.Model))
	if len(q.Prefix) > 0 {
		had := r.cached.deliver(model, m.seed, q.Prefix)
		d.PredictedCached = Some(int64(float64(had*blockBytes) / r.sizes.of(q.Model)))
		tokens -= d.PredictedCached.V
	}
	d.Tokens = int(max(0, tokens))
}

// sizes are how many bytes of a prompt make a token, by the model asked for, as
// the servers' counts show.
type sizes struct {
	mu   sync.RWMutex
	each map[string]float64
}

const (
	// defaultSize is that of English text and of models of which nothing is known.
	defaultSize = 4
	// maxSizes is how many models are told apart.
	maxSizes = 1024
)

func (s *sizes) of(model string) float64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if size, ok := s.each[model]; ok {
		return size
	}
	return defaultSize
}

// learn takes a prompt whose tokens were counted.
func (s *sizes) learn(model string, bytes int, tokens int64) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	size := float64(bytes) / float64(tokens)
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.each[model]
	switch {
	case known:
		size = (smoothing*was + size) / (smoothing + 1)
	case len(s.each) == maxSizes:
		return
	case s.each == nil:
		s.each = make(map[string]float64)
	}
	s.each[model] = size
}

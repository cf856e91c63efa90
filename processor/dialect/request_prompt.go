package dialect

import "github.com/cespare/xxhash/v2"

const (
	// PrefixBlock is the length in bytes of one block of a prompt's prefix.
	PrefixBlock = 512
	// PrefixBlocks is how many blocks of a prompt are hashed at most.
	PrefixBlocks = 8

	maxPrefix = PrefixBlock * PrefixBlocks
	// maxSession is how much of the name of a conversation is kept.
	maxSession = 256
)

// Prompt is what a body tells of its prompt and its conversation to who decides
// where it goes.
type Prompt struct {
	// Prefix are hashes of the prompt's leading blocks, each of all the bytes up
	// to its block's end, so that requests with the same beginning have the same
	// first hashes on every replica. A last block that is not full has none. nil:
	// the prompt is too short, or [Scanner.KeepPrefix] was not called.
	//
	// Hashed are the JSON values as they stand in the body, "system" or
	// "instructions" before the others wherever they stand, as models see them.
	// The model's name is no part of them.
	Prefix []uint64
	// Bytes is how long the prompt is in the body, so far.
	Bytes int64
	// Session is the "prompt_cache_key", "" for none; of a long one the beginning.
	Session string
}

// promptReader follows the top-level values that make the prompt.
type promptReader struct {
	dialect Dialect
	kept    bool // heads are
	// parts are what stands first in the prompt, and what follows.
	parts [2]promptPart
	// coming is the part whose value comes next, current the one whose value is
	// being read.
	coming, current *promptPart
}

// promptPart is the last value of one part of the prompt.
type promptPart struct {
	none       bool // the dialect has no such part
	over       bool // it came, and has ended
	start, end int64
	head       []byte // maxPrefix bytes at most
}

// known tells that no byte to come can change the head.
func (p *promptPart) known() bool { return p.none || p.over || len(p.head) == maxPrefix }

func newPromptReader(d Dialect) promptReader {
	r := promptReader{dialect: d}
	r.parts[0].none = d != Responses && d != Messages
	r.parts[1].none = d == Unknown || d == Transcription
	return r
}

// named takes the name of a top-level member.
func (r *promptReader) named(key []byte) {
	r.coming = nil
	switch r.dialect {
	case Chat:
		r.want(1, key, "messages")
	case Completions:
		r.want(1, key, "prompt")
	case Responses:
		r.want(0, key, "instructions")
		r.want(1, key, "input")
	case Messages:
		r.want(0, key, "system")
		r.want(1, key, "messages")
	case Generate:
		r.want(1, key, "token_ids")
	case Pooling:
		r.want(1, key, "input")
	}
}

func (r *promptReader) want(part int, key []byte, name string) {
	if string(key) == name {
		r.coming = &r.parts[part]
	}
}

// begin takes the first byte, at offset at, of the value of a top-level member.
func (r *promptReader) begin(at int64) {
	if r.current, r.coming = r.coming, nil; r.current != nil {
		*r.current = promptPart{start: at, end: at, head: r.current.head[:0]}
	}
}

// goesOn takes the part of piece, which begins at offset, that is of the value
// being read.
func (r *promptReader) goesOn(piece []byte, offset int64) {
	if r.current != nil {
		r.take(piece, offset, offset+int64(len(piece)))
	}
}

// end ends the value being read.
func (r *promptReader) end(piece []byte, offset, end int64) {
	if r.current != nil {
		r.take(piece, offset, end)
		r.current.over = true
		r.current = nil
	}
}

func (r *promptReader) take(piece []byte, offset, end int64) {
	p := r.current
	if r.kept {
		b := piece[max(p.start-offset, 0) : end-offset]
		p.head = append(p.head, b[:min(len(b), maxPrefix-len(p.head))]...)
	}
	p.end = end
}

// KeepPrefix has the prompt's beginning kept, for its prefix. It is to be called
// before the first Write.
func (s *Scanner) KeepPrefix() { s.prompt.kept = true }

// PrefixKnown tells that no byte to come changes the prefix, but those of a later
// member of the same name.
func (s *Scanner) PrefixKnown() bool {
	first, rest := &s.prompt.parts[0], &s.prompt.parts[1]
	return s.Finished() || len(first.head) == maxPrefix || first.known() && rest.known()
}

// Prompt returns what was read of the prompt so far.
func (s *Scanner) Prompt() Prompt {
	first, rest := &s.prompt.parts[0], &s.prompt.parts[1]
	return Prompt{
		Prefix:  prefix(first.head, rest.head),
		Bytes:   s.PromptBytes(),
		Session: s.session,
	}
}

// PromptBytes returns [Prompt].Bytes alone.
func (s *Scanner) PromptBytes() int64 {
	first, rest := &s.prompt.parts[0], &s.prompt.parts[1]
	return first.end - first.start + rest.end - rest.start
}

// prefix returns the hashes of the blocks of first with rest behind it.
func prefix(first, rest []byte) []uint64 {
	var b [maxPrefix]byte
	n := copy(b[:], first)
	n += copy(b[n:], rest)
	if n < PrefixBlock {
		return nil
	}
	hashes := make([]uint64, n/PrefixBlock)
	d := xxhash.New()
	for i := range hashes {
		_, _ = d.Write(b[i*PrefixBlock : (i+1)*PrefixBlock])
		hashes[i] = d.Sum64()
	}
	return hashes
}

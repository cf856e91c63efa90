// Package journal keeps the last records in memory, finds them by any id that
// an exchange is known by, and shows one as a waterfall.
package journal

import (
	"encoding/hex"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/inferspan/inferspan/processor/meter"
)

// MaxID is how long an id to look up may be, in bytes. A record is not found
// by an id that is longer.
const MaxID = 512

// Journal holds the newest records, as JSON, within a number of bytes: the
// oldest give way. It is safe for concurrent use.
type Journal struct {
	scratch sync.Pool // of *[]byte: the room that records are encoded in

	mu       sync.Mutex
	maxBytes int
	bytes    int // Invariant: <= maxBytes
	count    int
	oldest   *entry
	newest   *entry
	byID     map[string]chain
}

// entry is one record. It does not change, but for the links to newer ones.
type entry struct {
	json  []byte
	start time.Time
	newer *entry // by when it was added
	ids   []link
}

// link ties an entry to the next newer one of the same id.
type link struct {
	id    string
	newer *entry
}

// chain is what one id finds. As the oldest of all goes first, it is always the
// oldest of each of its chains.
type chain struct{ oldest, newest *entry }

// What is counted for an entry and for each of its ids beside their text. A map
// that keys come to and go from all the time fills about a quarter of its slots.
const (
	entryBytes = int(unsafe.Sizeof(entry{}))
	idBytes    = int(unsafe.Sizeof(link{}) + 4*(unsafe.Sizeof("")+unsafe.Sizeof(chain{})+1))
)

// New returns a Journal that takes up to maxBytes bytes, what it needs to find
// a record included. With 0 it holds nothing.
func New(maxBytes int) *Journal {
	return &Journal{
		maxBytes: maxBytes,
		byID:     make(map[string]chain),
	}
}

// Resize changes how many bytes j takes up to. Where there are more, the oldest
// records give way at once.
func (j *Journal) Resize(maxBytes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.maxBytes = maxBytes
	for j.bytes > j.maxBytes {
		j.evict()
	}
}

// Add keeps r, at the cost of the oldest where there is no room. A record that
// is alone too large is not kept. Nothing of r is referenced afterwards.
func (j *Journal) Add(r *meter.Record) {
	buf, ok := j.scratch.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	*buf = r.AppendJSON((*buf)[:0])
	// append takes all that the allocator's size class gives, and size counts it.
	e := &entry{json: append([]byte(nil), *buf...), start: r.Start, ids: ids(r)}
	j.scratch.Put(buf)
	size := e.size()
	j.mu.Lock()
	defer j.mu.Unlock()
	if size > j.maxBytes {
		return
	}
	for j.bytes+size > j.maxBytes {
		j.evict()
	}
	if j.newest == nil {
		j.oldest = e
	} else {
		j.newest.newer = e
	}
	j.newest = e
	for i := range e.ids {
		id := e.ids[i].id
		c := j.byID[id]
		if c.newest == nil {
			c.oldest = e
		} else {
			c.newest.link(id).newer = e
		}
		c.newest = e
		j.byID[id] = c
	}
	j.bytes += size
	j.count++
}

// evict drops the oldest entry; there is one whenever bytes is above 0.
func (j *Journal) evict() {
	e := j.oldest
	for _, l := range e.ids {
		if l.newer == nil {
			delete(j.byID, l.id)
			continue
		}
		c := j.byID[l.id]
		c.oldest = l.newer
		j.byID[l.id] = c
	}
	j.oldest = e.newer
	if j.oldest == nil {
		j.newest = nil
	}
	j.bytes -= e.size()
	j.count--
}

// Lookup returns the records that have id as request id, trace id or response
// id, each a JSON object, newest first. They must not be changed.
func (j *Journal) Lookup(id string) [][]byte {
	out := j.find(id)
	// Trace ids are written in small letters here and in capitals elsewhere.
	if lower := strings.ToLower(id); len(out) == 0 && lower != id && len(id) == hex.EncodedLen(16) {
		out = j.find(lower)
	}
	return out
}

func (j *Journal) find(id string) [][]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out [][]byte
	for e := j.byID[id].oldest; e != nil; e = e.link(id).newer {
		out = append(out, e.json)
	}
	for a, b := 0, len(out)-1; a < b; a, b = a+1, b-1 {
		out[a], out[b] = out[b], out[a]
	}
	return out
}

// Held returns how many records are held and when the first of them began.
func (j *Journal) Held() (count int, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.oldest != nil {
		since = j.oldest.start
	}
	return j.count, since
}

// link returns the entry's link for id, which it must have.
func (e *entry) link(id string) *link {
	for i := range e.ids {
		if e.ids[i].id == id {
			return &e.ids[i]
		}
	}
	//nolint:forbidigo // a violated invariant: Add and evict keep the chains
	panic("journal: an entry is in the chain of an id that it does not have")
}

func (e *entry) size() int {
	n := entryBytes + cap(e.json)
	for _, l := range e.ids {
		n += idBytes + len(l.id)
	}
	return n
}

// ids are the different ids that r is found by, copied: r's own may be parts of
// buffers that must not be kept.
func ids(r *meter.Record) []link {
	all := [...]string{r.RequestID, "", r.ResponseID.V}
	if r.Trace.TraceID != [16]byte{} {
		all[1] = hex.EncodeToString(r.Trace.TraceID[:])
	}
	out := make([]link, 0, len(all))
next:
	for _, id := range all {
		if id == "" || len(id) > MaxID {
			continue
		}
		for _, l := range out {
			if l.id == id {
				continue next
			}
		}
		out = append(out, link{id: strings.Clone(id)})
	}
	return out
}

package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/inferspan/inferspan/processor/route"
)

// Read reads what a model server's page of metrics, in Prometheus's text form,
// says of its load; At and Interval are the caller's to set. What the page does
// not say, or gives as NaN, as infinite or as negative, is unknown. Of what it
// does not look for, and of lines that don't fit into r's buffer, it reads
// nothing but their ends. Its error is that of r.
//
// A server's engines count together. Requests and blocks are summed, whatever
// the waiting wait for. KVUsage is the mean over the engines, whose caches have
// one size: the server's frontend spreads requests over them, so that one full
// engine among empty ones says little of what the server can take.
//
// It is a scanner of its own, because a page has a thousand lines and nine of
// them count: a library makes objects of all (BenchmarkRead compares the two,
// FuzzRead holds them together).
func Read(r *bufio.Reader) (route.Signals, error) {
	var p reading
	for {
		line, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if !long {
			p.line(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, io.EOF):
			return p.signals(), nil
		case err != nil:
			return route.Signals{}, fmt.Errorf("reading the page: %w", err)
		}
	}
}

// reading is a page as far as it was read.
type reading struct {
	running, waiting, kv tally
	// waitingFor is the same number as waiting, by reason; oldKV the same as kv,
	// by the name that it had until 0.12. Servers of some versions send both.
	waitingFor, oldKV tally
	blocks            tally
	blockSize         route.Opt[int]
	lora              *adapters
	loraAt            float64 // when lora was said, Unix seconds
}

// adapters are what one line says of LoRA.
type adapters struct {
	max              route.Opt[int]
	running, waiting []string
}

// tally adds up the samples of one name.
type tally struct {
	sum     float64
	samples int
	unknown bool // one of them
}

// add takes a sample. What no server has is not known: what one says is in the
// mean of all, and beside such a number those of the others would be nothing.
func (t *tally) add(v float64) {
	t.samples++
	t.sum += v
	t.unknown = t.unknown || math.IsNaN(v) || v < 0 || v > math.MaxInt32
}

// total is the sum, unknown if any part of it is.
func (t *tally) total() route.Opt[float64] {
	if t.samples == 0 || t.unknown {
		return route.Opt[float64]{}
	}
	return route.Some(t.sum)
}

// share is the mean where it can be a part of a whole.
func (t *tally) share() route.Opt[float64] {
	v := t.total()
	if v.V /= float64(t.samples); !v.OK || v.V > 1 {
		return route.Opt[float64]{}
	}
	return v
}

func (r *reading) signals() route.Signals {
	s := route.Signals{Running: r.running.total(), Waiting: r.waiting.total(), KVUsage: r.kv.share(), BlockSize: r.blockSize}
	if r.waiting.samples == 0 {
		s.Waiting = r.waitingFor.total()
	}
	if r.kv.samples == 0 {
		s.KVUsage = r.oldKV.share()
	}
	if b := r.blocks.total(); b.OK && b.V <= math.MaxInt32 {
		s.Blocks = route.Some(int(b.V))
	}
	if l := r.lora; l != nil && l.max.OK {
		s.MaxLoRA, s.RunningLoRA, s.WaitingLoRA = l.max, l.running, l.waiting
	}
	return s
}

// line takes one line of the page. The names begin with `vllm:`, or with `vllm_`
// where something between has made them names without a colon.
func (r *reading) line(line []byte) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) < len("vllm:") || string(line[:4]) != "vllm" || line[4] != ':' && line[4] != '_' {
		return
	}
	name, s := splitName(line[5:])
	switch string(name) {
	case "num_requests_running":
		s.addTo(&r.running)
	case "num_requests_waiting":
		s.addTo(&r.waiting)
	case "num_requests_waiting_by_reason":
		s.addTo(&r.waitingFor)
	case "kv_cache_usage_perc":
		s.addTo(&r.kv)
	case "gpu_cache_usage_perc":
		s.addTo(&r.oldKV)
	case "lora_requests_info":
		r.adapters(s)
	case "cache_config_info":
		r.cache(s)
	}
}

func (r *reading) adapters(s sample) {
	var l adapters
	for s.next() {
		switch string(s.name) {
		case "max_lora":
			l.max = count(s.value)
		case "running_lora_adapters":
			l.running = list(s.value)
		case "waiting_lora_adapters":
			l.waiting = list(s.value)
		}
	}
	// The value is the time at which the labels were true: each change makes a
	// series of its own, and the old ones stay.
	if at, ok := s.number(); ok && !math.IsNaN(at) && (r.lora == nil || at >= r.loraAt) {
		r.lora, r.loraAt = &l, at
	}
}

func (r *reading) cache(s sample) {
	var size, blocks route.Opt[int]
	for s.next() {
		switch string(s.name) {
		case "block_size":
			size = count(s.value)
		case "num_gpu_blocks":
			blocks = count(s.value)
		}
	}
	if _, ok := s.number(); !ok {
		return
	}
	if size.OK {
		r.blockSize = size
	}
	if blocks.OK {
		r.blocks.add(float64(blocks.V))
	}
}

// count reads a label that holds a number above 0. A server that does not know
// it yet says None.
func count(label []byte) route.Opt[int] {
	n, err := strconv.ParseInt(string(label), 10, 32)
	if err != nil || n <= 0 {
		return route.Opt[int]{}
	}
	return route.Some(int(n))
}

// list reads a label that holds names with commas between.
func list(label []byte) []string {
	var out []string
	for name := range strings.SplitSeq(string(label), ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

// law is how long things take at one of the fleet's servers: as recorded
// exchanges with a real vLLM show it, and nothing else.
type law struct {
	// gaps are the times between two tokens of a stream that has the engine to
	// itself, in order of size: what one step of the engine takes.
	gaps []time.Duration
	// sequence is how much longer a step is for each further sequence in it.
	sequence time.Duration
	// prefill is how much longer a step is for each token of a prompt that it
	// reads and that is not in the cache.
	prefill time.Duration
	// front is the part of the time to first token that is no step of the engine.
	front time.Duration
}

// The recordings that the law is taken from.
const (
	longStream = "chat-long-600"            // 600 tokens of one stream: the gaps
	uncached   = "chat-cached-prompt"       // a prompt of 411 tokens
	cached     = "chat-cached-prompt-again" // the same, 384 of them from the cache
)

// batches are recordings of completions with so many sequences at once, which
// else are alike.
var batches = map[int]string{1: "comp-usage", 2: "comp-n2", 3: "comp-prompts3"}

// readLaw takes the law from the recordings in dir.
func readLaw(dir string) (law, error) {
	var l law
	records := map[string]*meter.Record{}
	for _, name := range []string{longStream, uncached, cached, batches[1], batches[2], batches[3]} {
		r, err := measured(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			return law{}, err
		}
		records[name] = r
	}
	l.gaps = gapsOf(records[longStream])
	slices.Sort(l.gaps)

	l.sequence = (median(gapsOf(records[batches[3]])) - median(gapsOf(records[batches[1]]))) / 2
	spared := records[cached].CachedTokens.V - records[uncached].CachedTokens.V
	if spared <= 0 || l.sequence <= 0 {
		return law{}, fmt.Errorf("read the law: %d tokens spared by the cache and %v for each sequence, want both above 0", spared, l.sequence)
	}
	l.prefill = (records[uncached].FirstToken.V - records[cached].FirstToken.V) / time.Duration(spared)
	read := records[uncached].PromptTokens.V - records[uncached].CachedTokens.V
	l.front = records[uncached].FirstToken.V - median(l.gaps) - time.Duration(read)*l.prefill
	if l.prefill <= 0 || l.front <= 0 {
		return law{}, fmt.Errorf("read the law: %v for each token of a prompt and %v beside the engine, want both above 0", l.prefill, l.front)
	}
	return l, nil
}

// measured is the record of a recording, with every chunk's mark.
func measured(file string) (*meter.Record, error) {
	rec, err := recording.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the law: %w", err)
	}
	const allChunks = 1024
	m := meter.New(meter.Start{Method: rec.Request.Method, Path: rec.Request.Path}, meter.Options{MaxChunks: allChunks})
	m.Headers(rec.Head.At, rec.Head.Status, rec.Head.Headers.Get("content-type"), "")
	for _, p := range rec.Pieces {
		m.Observe(p.At, p.Data)
	}
	return m.Close(rec.EndAt, meter.CauseEnd), nil
}

// gapsOf are the times between the tokens of r's choices.
func gapsOf(r *meter.Record) []time.Duration {
	var gaps []time.Duration
	for _, m := range r.Marks {
		if m.Kind == meter.MarkChunk && m.Gap > 0 {
			gaps = append(gaps, m.Gap)
		}
	}
	return gaps
}

// median is that of times in any order, 0 of none.
func median(times []time.Duration) time.Duration { return quantile(times, .5) }

// quantile is the least of times that a share q of them does not exceed, 0 of
// none.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	i := int(q*float64(len(sorted))+.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

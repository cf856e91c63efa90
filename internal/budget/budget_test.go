package budget

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// recorded is the stream that is played: 600 tokens, one a chunk, as a chat of
// vLLM sends them.
const recorded = "chat-long-600"

// BenchmarkCPU compares the processor time of the servers, from the beginning of
// a stream to what becomes of its record. Everything on is with spans and metrics
// exported over OTLP; routing on is without.
func BenchmarkCPU(b *testing.B) {
	noop, routing, exporting := startNoop(b), startInferspan(b, false), startInferspan(b, true)
	buffered, duplex := filter.ProcessingMode_BUFFERED, filter.ProcessingMode_FULL_DUPLEX_STREAMED
	for _, f := range []struct {
		name string
		form form
	}{{"streamed", form{request: buffered}}, {"observe", form{observe: true}}} {
		b.Run("frame/"+f.name, func(b *testing.B) {
			m := &maker{b: b, form: f.form}
			m.request(prompt(1<<10), 1<<20)
			pieces := stream(b, recorded)
			m.response("text/event-stream; charset=utf-8", pieces)
			const streams = 32
			x := compare(b, noop, exporting, streams*len(pieces), func(d driver) {
				d.playAll(b, m.steps, streams, streams, 2*time.Millisecond)
			})
			measured.Add(Row{"CPU per response frame, everything on, " + f.name, x, 1.0, "x noop"})
		})
	}
	for _, r := range []struct {
		name        string
		mode        filter.ProcessingMode_BodySendMode
		size, frame int
		limit       float64
	}{
		{"1KB/buffered", buffered, 1 << 10, 1 << 20, 1.5},
		{"1KB/duplex", duplex, 1 << 10, 56_000, 1.5},
		{"220KB/buffered", buffered, 220 << 10, 1 << 20, 1.3},
		{"220KB/duplex", duplex, 220 << 10, 56_000, 1.3},
	} {
		for _, with := range []struct {
			name string
			server
		}{{"routing on", routing}, {"everything on", exporting}} {
			b.Run("request/"+r.name+"/"+with.name, func(b *testing.B) {
				m := &maker{b: b, form: form{request: r.mode}}
				m.request(prompt(r.size), r.frame)
				m.response("application/json", answer())
				const requests = 1000 // long enough a round for garbage collection to be in each
				x := compare(b, noop, with.server, requests, func(d driver) {
					d.playAll(b, m.steps, requests, 8, 0)
				})
				measured.Add(Row{"CPU per request, " + with.name + ", " + r.name, x, r.limit, "x noop"})
			})
		}
	}
}

// compare plays by turns what play plays to both servers. It reports what one of
// its units costs each, and returns the median of the rounds' ratios.
func compare(b *testing.B, noop, inferspan server, units int, play func(driver)) float64 {
	b.Helper()
	servers := [...]server{noop, inferspan}
	for _, s := range servers {
		play(s.driver) // opens connections, grows what grows
	}
	var ratios []float64
	var sums [len(servers)]time.Duration
	for b.Loop() {
		var used [len(servers)]time.Duration
		for i, s := range servers {
			before := s.cpu(b)
			play(s.driver)
			used[i] = s.cpu(b) - before
			sums[i] += used[i]
		}
		ratios = append(ratios, float64(used[1])/float64(used[0]))
	}
	slices.Sort(ratios)
	x := ratios[len(ratios)/2]
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(len(ratios)*units) }
	b.ReportMetric(x, "x_noop")
	b.ReportMetric(per(sums[1]), "cpu-ns/unit")
	b.ReportMetric(per(sums[0]), "noop-cpu-ns/unit")
	b.ReportMetric(0, "ns/op") // the wall clock's, of both
	return x
}

// BenchmarkMemory reports what a live stream holds beyond what it holds with the
// stock processor, after few tokens and after many: by what the kernel counts as
// the programs', with a collector that lets little garbage stand, and with the
// usual one, which lets as much stand as is held.
func BenchmarkMemory(b *testing.B) {
	for _, tokens := range []int{8, 512} {
		name := fmt.Sprintf("%d_tokens", tokens)
		b.Run(name, func(b *testing.B) {
			var held, resident []int64
			above := func(env ...string) int64 {
				noop, inferspan := startNoop(b, env...), startInferspan(b, true, env...)
				defer noop.Kill()
				defer inferspan.Kill()
				return perStream(b, inferspan, tokens) - perStream(b, noop, tokens)
			}
			for b.Loop() {
				held = append(held, above("GOGC=10"))
				resident = append(resident, above())
			}
			slices.Sort(held)
			slices.Sort(resident)
			x := float64(held[len(held)/2])
			b.ReportMetric(x, "held-B/stream")
			b.ReportMetric(float64(resident[len(resident)/2]), "resident-B/stream")
			b.ReportMetric(0, "ns/op")
			measured.Add(Row{"memory per live stream above noop, " + name, x / 1024, 16, "KiB"})
		})
	}
}

// perStream is what the memory of s grows by for each stream that has had so many
// chunks and is not over, in bytes.
func perStream(b *testing.B, s server, chunks int) int64 {
	b.Helper()
	const streams = 2000
	m := &maker{b: b, form: form{observe: true}}
	m.request(prompt(1<<10), 1<<20)
	m.response("text/event-stream; charset=utf-8", stream(b, recorded)[:chunks])
	s.driver.playAll(b, m.steps, 64, 32, 0)
	live := m.steps[:len(m.steps)-1] // these do not end
	before := s.memory(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			cs, err := s.driver.open(ctx)
			if err == nil {
				err = send(cs, live, 5*time.Millisecond)
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return (s.memory(b) - before) / streams
}

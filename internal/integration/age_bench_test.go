//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// A stream of these benchmarks: so many chunks, so far apart.
const (
	agingChunks = 200
	agingGap    = 2 * time.Millisecond
)

// BenchmarkAge measures, through the real Envoy, how old chunks are when they
// reach the client, how long the first takes from the request on and how far apart
// they are. By turns Inferspan stands behind the filters, a stock processor that
// looks at nothing, and nobody: requests then take a route without filters. x_noop
// is Inferspan's median for one of the stock processor's, x_none for one without
// filters.
func BenchmarkAge(b *testing.B) {
	noop := startNoop(b)
	for _, form := range []string{observe, split, splitDuplex} {
		b.Run(form, func(b *testing.B) {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /", aging)
			server := httptest.NewServer(mux)
			b.Cleanup(server.Close)
			addr := strings.TrimPrefix(server.URL, "http://")
			ours := newWay(b, form, addr, "", nil)
			stock := newWay(b, form, addr, noop, nil)
			none := newWay(b, form, addr, noop, strings.NewReplacer(`regex: "/(v1|v2|`, `regex: "/(v3|v4|`))
			all := []*way{ours, stock, none}
			for turn := 0; b.Loop(); turn++ {
				for i := range all {
					all[(turn+i)%len(all)].stream(b)
				}
			}
			for _, w := range all {
				slices.Sort(w.ages)
				slices.Sort(w.firsts)
				slices.Sort(w.gaps)
			}
			b.ReportMetric(median(ours.ages), "age-µs")
			b.ReportMetric(median(ours.ages)/median(stock.ages), "age-x_noop")
			b.ReportMetric(median(ours.firsts), "first-µs")
			b.ReportMetric(median(ours.firsts)/median(stock.firsts), "first-x_noop")
			b.ReportMetric(median(ours.gaps)/median(none.gaps), "gap-x_none")
			b.ReportMetric(median(stock.gaps)/median(none.gaps), "noop-gap-x_none")
			b.ReportMetric(0, "ns/op") // the server's own pace
		})
	}
}

// aging answers with chunks that say when they were written.
func aging(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("content-type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(agingGap)
	defer tick.Stop()
	for range agingChunks {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		_, err := fmt.Fprintf(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"tiny","choices":[{"index":0,"delta":{"content":"%d"}}]}`+"\n\n", time.Now().UnixNano())
		if err != nil {
			return
		}
		_ = out.Flush() // a client that has gone shows at the next chunk
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n") // as above
}

// way is an Envoy with one processor, and what came through it, in microseconds.
type way struct {
	client             *testkit.Client
	ages, firsts, gaps []float64
}

// newWay starts an Envoy whose filters ask the processor, or an inferspan where
// that is "".
func newWay(b *testing.B, form, server, processor string, adapt *strings.Replacer) *way {
	b.Helper()
	e := newEdge(b, form)
	e.servers, e.listen = [2]string{server, server}, processor
	if adapt != nil {
		e.adapt = adapt
	}
	if processor == "" {
		e.startInferspan(fmt.Sprintf("pools: [{name: default, endpoints: [%q]}]\n", server))
	}
	e.startEnvoy()
	return &way{client: e.client}
}

// startNoop builds and starts the stock processor.
func startNoop(b *testing.B) (addr string) {
	b.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		b.Fatal(err)
	}
	bin := filepath.Join(b.TempDir(), "noop")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "./internal/budget/noop")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("building the stock processor: %v\n%s", err, out)
	}
	p, err := testkit.StartProcess("noop", bin, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	line, err := p.WaitLine(b.Context(), func(line string) bool { return strings.HasPrefix(line, "listen ") })
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimPrefix(line, "listen ")
}

var written = regexp.MustCompile(`"content":"(\d+)"`)

// stream has one stream come through w.
func (w *way) stream(b *testing.B) {
	b.Helper()
	call := chatCall()
	begun := time.Now()
	seen, last := 0, time.Time{}
	call.OnPiece = func(body []byte) {
		now := time.Now()
		chunks := written.FindAllSubmatch(body[seen:], -1)
		if len(chunks) == 0 {
			return
		}
		seen = len(body)
		for _, c := range chunks {
			at, err := strconv.ParseInt(string(c[1]), 10, 64)
			if err != nil {
				b.Error(err)
			}
			w.ages = append(w.ages, micros(now.Sub(time.Unix(0, at))))
		}
		if last.IsZero() {
			w.firsts = append(w.firsts, micros(now.Sub(begun)))
		} else {
			w.gaps = append(w.gaps, micros(now.Sub(last)))
		}
		last = now
	}
	a, err := w.client.Do(b.Context(), call)
	if err != nil || a.Status != http.StatusOK || a.Broken {
		b.Fatalf("%v: %+v", err, a)
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// median is that of values that are sorted.
func median(all []float64) float64 { return all[len(all)/2] }

//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/testkit"
)

// pair is an edge with two replicas of inferspan.
type pair struct {
	*edge
	replicas [2]*testkit.Inferspan
}

// nobody stands for a replica that is not there.
const nobody = -1

// startPair starts an edge whose deciding and observing filters have these of the
// replicas; settings are what a replica's configuration has beside its pools.
func startPair(t *testing.T, form string, decide, observe []int, settings ...string) *pair {
	t.Helper()
	p := &pair{edge: newEdge(t, form)}
	for i := range p.replicas {
		s := ""
		if i < len(settings) {
			s = settings[i]
		}
		p.replicas[i] = p.startReplica("", p.config("default")+s)
	}
	p.inferspan, p.listen = p.replicas[0], p.replicas[0].Listen
	p.adapt = strings.NewReplacer(
		endpointLines(p.listen), endpointLines(p.addrs(decide)...),
		"      endpoints: *inferspan\n", "      endpoints:\n      - lb_endpoints:\n"+endpointLines(p.addrs(observe)...),
	)
	p.startEnvoy()
	return p
}

func (p *pair) addrs(which []int) []string {
	var all []string
	for _, i := range which {
		if i == nobody {
			all = append(all, refusing(p.t))
			continue
		}
		all = append(all, p.replicas[i].Listen)
	}
	return all
}

// endpointLines are endpoints as they stand in the delivered configurations.
func endpointLines(addrs ...string) string {
	var b strings.Builder
	for _, a := range addrs {
		host, port, _ := net.SplitHostPort(a)
		fmt.Fprintf(&b, "        - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	}
	return b.String()
}

// many plays n exchanges with a script each, eight at a time.
func (p *pair) many(t *testing.T, n int, name string) []exchange {
	t.Helper()
	played := make([]exchange, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range played {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			if played[i], err = p.play(t.Context(), chatScript(name, nil), chatCall()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return played
}

// everyOnce stops the replicas and wants exactly one span of each exchange.
func (p *pair) everyOnce(t *testing.T, played []exchange) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, r := range p.replicas {
		if err := r.Stop(ctx); err != nil {
			t.Errorf("inferspan did not end well: %v", err)
		}
	}
	want := map[string]int{}
	for _, x := range played {
		want[x.id] = 1
	}
	if diff := cmp.Diff(want, p.spans()); diff != "" {
		t.Errorf("spans with an outcome by request id (-want +got):\n%s", diff)
	}
}

// spans counts the spans with an outcome by request id.
func (e *edge) spans() map[string]int {
	spans := map[string]int{}
	for _, s := range e.sink.Spans(func(testkit.Span) bool { return true }) {
		if _, ok := testkit.Attr(s.GetAttributes(), "inferspan.outcome"); ok {
			id, _ := testkit.Attr(s.GetAttributes(), "inferspan.request.id")
			spans[fmt.Sprint(id)]++
		}
	}
	return spans
}

// counted is the sum of a metric on the page of a replica, over the series that
// have with among their labels.
func counted(t *testing.T, r *testkit.Inferspan, name, with string) float64 {
	t.Helper()
	page, err := testkit.Get(t.Context(), "http://"+r.Admin+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(page)) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok || !strings.HasPrefix(series, name+"{") || !strings.Contains(series, with) {
			continue
		}
		v, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += v
	}
	return sum
}

// wait polls until f returns nil.
func wait(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := testkit.Poll(ctx, func(context.Context) error { return f() }); err != nil {
		t.Fatal(err)
	}
}

// TestEitherReplica has each replica serve each filter: the record is the one that
// observes', with the decision of the one that decides.
func TestEitherReplica(t *testing.T) {
	both := []int{0, 1}
	const key = "handover: {key_file: testdata/handover.key}\n"
	for _, form := range []string{split, splitDuplex} {
		for name, c := range map[string]struct {
			decide, observe []int
			settings        []string
		}{
			"both, both":            {both, both, nil},
			"first, second":         {[]int{0}, []int{1}, nil},
			"second, first, signed": {[]int{1}, []int{0}, []string{key, key}},
		} {
			t.Run(form+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := startPair(t, form, c.decide, c.observe, c.settings...)
				played := p.many(t, 60, "either")
				for _, x := range played {
					s, up := p.span(t, x.id), p.upstream(t, x.id)
					p.checkContext(t, s, up)
					if got, want := x.Header.Get("x-trace-id"), fmt.Sprintf("%x", s.GetTraceId()); got != want {
						t.Errorf("the client got the x-trace-id %q, want %q", got, want)
					}
					if !testkit.HasAttrs(s.GetAttributes(), map[string]any{
						"inferspan.outcome": "ok", "gen_ai.request.model": "tiny", "inferspan.route.reason": "default", "inferspan.pool": "default",
					}) {
						t.Errorf("the span is %v", s.GetAttributes())
					}
				}
				wait(t, func() error {
					for i, r := range p.replicas {
						decided, observed := counted(t, r, "inferspan_route_decisions_total", ""), counted(t, r, "inferspan_requests_total", "")
						if (decided > 0) != slices.Contains(c.decide, i) || (observed > 0) != slices.Contains(c.observe, i) {
							return fmt.Errorf("replica %d decided %v times and observed %v", i, decided, observed)
						}
						if n := counted(t, r, "inferspan_processor_faults_total", ""); n != 0 {
							return fmt.Errorf("replica %d counts %v faults", i, n)
						}
					}
					return nil
				})
				p.everyOnce(t, played)
			})
		}
	}
}

// TestKeysDiffer has replicas with different keys: what they tell each other is
// not believed, and no exchange is lost or has two records.
func TestKeysDiffer(t *testing.T) {
	p := startPair(t, split, []int{0}, []int{1},
		"handover: {key_file: testdata/handover.key}\n", "handover: {key_file: testdata/another.key}\n")
	played := p.many(t, 10, "differ")
	for _, x := range played {
		if !testkit.HasAttrs(p.span(t, x.id).GetAttributes(), map[string]any{"inferspan.outcome": "ok", "inferspan.route.reason": "unrouted"}) {
			t.Errorf("the span is %v", p.span(t, x.id).GetAttributes())
		}
	}
	wait(t, func() error {
		if n := counted(t, p.replicas[1], "inferspan_processor_faults_total", `inferspan_reason="handover_forged"`); n != float64(len(played)) {
			return errors.New(fmt.Sprint("handover_forged counts ", n))
		}
		return nil
	})
	p.everyOnce(t, played)
}

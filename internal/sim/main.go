// Command sim shows what the routing policies are worth: it runs the real router
// over a simulated fleet, whose servers behave as recorded exchanges with a real
// vLLM show. It is run by `make sim`; the same seed gives the same numbers.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// defaultRate is of new conversations a second: with it even an equal share is
// something that the slow server can keep up with. At nearly twice the rate it
// falls behind for good, and round-robin's first tokens come after minutes.
const defaultRate = 4

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	recordings := flags.String("recordings", "internal/testkit/testdata/streams", "the recordings' `directory`")
	s := scenario{}
	flags.Float64Var(&s.rate, "rate", defaultRate, "new conversations a second")
	flags.DurationVar(&s.duration, "duration", 10*time.Minute, "how long it goes on, in simulated time")
	flags.Uint64Var(&s.seed, "seed", 1, "of what is random")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || s.rate <= 0 || s.duration <= 0 {
		_, _ = io.WriteString(stderr, "sim: want --rate and --duration above 0, and no other arguments\n")
		return 2
	}
	table, err := compare(*recordings, s)
	if err == nil {
		_, err = io.WriteString(stdout, table)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "sim: %v\n", err)
		return 1
	}
	return 0
}

// policies are compared with the first.
var policies = []string{"round-robin", "random", "least-load", "prefix"}

// compare runs s with every policy and several numbers of replicas, and returns
// a table.
func compare(recordings string, s scenario) (string, error) {
	l, err := readLaw(recordings)
	if err != nil {
		return "", err
	}
	out := new(bytes.Buffer) // writing to it never fails
	_, _ = fmt.Fprintf(out, "%d servers, one of them %d times as slow, one that dies halfway; %v with %g new conversations a second.\n"+
		"A server, as recorded: a step takes %v (p50), %v (p99); %v for each further sequence, %v for each token of a prompt, %v beside the engine.\n\n"+
		"replicas: of Inferspan. against %s: the p99, divided by the one of that policy. cached: the part of the\n"+
		"prompts' tokens that a server's cache had. at one, of at most: the most requests at a time at one server, and in all.\n\n",
		servers, slowness, s.duration, s.rate, median(l.gaps), quantile(l.gaps, .99), l.sequence, l.prefill, l.front, policies[0])
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "replicas\tpolicy\trequests\tfailed\tTTFT p50\tp90\tp99\tagainst "+policies[0]+"\tcached\tat one\tof at most\t")
	for _, s.replicas = range []int{1, 2, 4} {
		var base time.Duration
		for _, s.policy = range policies {
			o, err := simulate(l, s)
			if err != nil {
				return "", err
			}
			p99 := quantile(o.ttft, .99)
			if base == 0 {
				base = p99
			}
			ms := func(q float64) string { return fmt.Sprintf("%.0f ms", quantile(o.ttft, q).Seconds()*1000) }
			_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%s\t%s\t%.2f\t%.0f %%\t%d\t%d\t\n", s.replicas, s.policy, o.requests, o.failed,
				ms(.5), ms(.9), ms(.99), p99.Seconds()/base.Seconds(), 100*float64(o.cached)/float64(o.prompt), o.crowded, o.most)
		}
	}
	_ = w.Flush()
	return out.String(), nil
}

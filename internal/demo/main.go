// Command demo shows Inferspan at work on one machine: three stand-in vLLM
// servers of different speed, Envoy, Inferspan, and a client that now and then
// hangs up. What it prints of a request is what Inferspan's own API says.
//
// It is run by `make demo`, needs nothing but the two programs it is given, and
// leaves nothing behind.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	// With SIGPIPE caught, a reader of our output that goes away is a failed
	// write, and what was started is still ended.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the command line says.
type options struct {
	envoy, inferspan string
	duration         time.Duration
	rate             float64 // requests a second
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.envoy, "envoy", ".tools/envoy/bin/envoy", "Envoy's `binary`")
	flags.StringVar(&o.inferspan, "inferspan", "bin/inferspan", "Inferspan's `binary`")
	seconds := flags.Float64("seconds", 60, "how long to send requests")
	flags.Float64Var(&o.rate, "rate", 3, "requests a second, at most")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || *seconds <= 0 || o.rate <= 0 || o.rate > maxRate {
		_ = say(stderr, "demo: want --seconds above 0, --rate above 0 and at most %d, and no other arguments\n", maxRate)
		return 2
	}
	o.duration = time.Duration(*seconds * float64(time.Second))
	if err := demo(ctx, o, stdout); err != nil {
		_ = say(stderr, "demo: %v\n", err)
		return 1
	}
	return 0
}

func demo(ctx context.Context, o options, out io.Writer) error {
	s, err := startStack(ctx, o, out)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if s == nil {
		return nil // told to end before it began
	}
	err = load(ctx, s, o, out)
	if err == nil {
		err = say(out, "\nending all that was started\n")
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

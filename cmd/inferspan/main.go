// Command inferspan is the ext_proc service and the tools around it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

const usage = `usage: inferspan COMMAND

  serve    --config FILE                  serve ext_proc to Envoy, until SIGTERM
  check    FILE                           check a configuration; exit 1 with faults
  replay   [--json | --waterfall] [--cut frames|bytes|SIZE|random:SEED] FILE...
                                          recorded exchanges to records
  lookup   ID [--admin URL] [--jaeger URL [--service NAME]] [--json]
                                          show a request by request, trace or response id
  version                                 print the version
`

// The exit codes beside 0.
const (
	exitFault = 1 // it was tried and did not work
	exitUsage = 2 // it could not be tried
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run does what args ask for and returns the exit code. The end of ctx ends it
// as the first signal would.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		return serve(ctx, args, stderr)
	case "check":
		return check(args, stderr)
	case "replay":
		return replay(args, stdout, stderr)
	case "lookup":
		return lookup(ctx, args, stdout, stderr)
	case "version":
		return printVersion(args, stdout, stderr)
	case "-h", "-help", "--help", "help":
		writef(stdout, usage)
		return 0
	case "":
		writef(stderr, usage)
	default:
		writef(stderr, "inferspan: there is no command %q\n%s", command, usage)
	}
	return exitUsage
}

// writef writes for a person; if it can't, there is no one to tell.
func writef(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

package main

import (
	"flag"
	"io"
	"strings"
)

// newFlags returns the flags of a command; form is what follows its name.
func newFlags(command, form string, stderr io.Writer) *flag.FlagSet {
	use := strings.TrimSpace("usage: inferspan " + command + " " + form)
	f := flag.NewFlagSet("inferspan "+command, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { writef(stderr, "%s\n", use) }
	return f
}

// operands parses args, with flags before, between and after what is no flag,
// and returns the latter. It returns false, having said why and how the
// command is used, unless there are exactly want.
func operands(f *flag.FlagSet, args []string, want int) ([]string, bool) {
	var out []string
	for {
		if f.Parse(args) != nil {
			return nil, false // Parse has said it
		}
		if f.NArg() == 0 {
			break
		}
		out = append(out, f.Arg(0))
		args = f.Args()[1:]
	}
	if len(out) != want {
		f.Usage()
		return nil, false
	}
	return out, true
}

package main

import (
	"errors"
	"io"
	"os"

	"github.com/inferspan/inferspan/internal/config"
)

// check prints the faults of a configuration, or its warnings, or nothing.
func check(args []string, stderr io.Writer) int {
	files, ok := operands(newFlags("check", "FILE", stderr), args, 1)
	if !ok {
		return exitUsage
	}
	c, err := config.Load(files[0])
	if err != nil {
		writeFaults(stderr, err)
		return exitFault
	}
	for _, warning := range c.Warnings(os.Getenv) {
		writef(stderr, "%s: warning: %s\n", files[0], warning)
	}
	return 0
}

// writeFaults writes what config.Load returned, one fault a line.
func writeFaults(w io.Writer, err error) {
	faults, ok := errors.AsType[*config.Error](err)
	if !ok {
		writef(w, "inferspan: %v\n", err)
		return
	}
	for _, line := range faults.Lines() {
		writef(w, "%s\n", line)
	}
}

package main

import (
	"cmp"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

// build returns the version and the commit of this binary, as far as the linker
// or the Go command recorded them.
func build() (name, commit string) {
	name, commit = version, "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(name, "unknown"), commit
	}
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+modified"
			}
		}
	}
	return cmp.Or(name, info.Main.Version, "unknown"), commit + modified
}

func printVersion(args []string, stdout, stderr io.Writer) int {
	if _, ok := operands(newFlags("version", "", stderr), args, 0); !ok {
		return exitUsage
	}
	name, commit := build()
	writef(stdout, "inferspan %s\ncommit %s\n%s %s/%s\n", name, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}

// Command generate writes the dashboard's JSON to the file that it is given.
package main

import (
	"fmt"
	"os"

	"github.com/inferspan/inferspan/dashboards/grafana"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write; got %d", len(args))
	}
	b, err := grafana.JSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[0], b, 0o644); err != nil { //nolint:gosec // a file of the repository, for everyone to read
		return fmt.Errorf("writing the dashboard: %w", err)
	}
	return nil
}

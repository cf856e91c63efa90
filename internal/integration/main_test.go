//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/testkit"
)

// binary is the inferspan that all tests run. With INFERSPAN_RACE set it has
// the race detector.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "inferspan-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a directory for the binary:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var flags []string
	if os.Getenv("INFERSPAN_RACE") != "" {
		flags = []string{"-race"}
	}
	if binary, err = testkit.BuildInferspan(ctx, dir, flags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

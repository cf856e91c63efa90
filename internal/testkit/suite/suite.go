// Package suite runs the tests of a package that share something costly.
package suite

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/testkit"
)

// WithInferspan runs the tests of a package that need the inferspan binary,
// which it builds with flags of `go build` and names in *binary, and returns the
// exit code of TestMain: 1 as well where a goroutine is left behind.
func WithInferspan(m *testing.M, binary *string, flags ...string) int {
	dir, err := os.MkdirTemp("", "inferspan-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a directory for the binary:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if *binary, err = testkit.BuildInferspan(ctx, dir, flags...); err != nil {
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

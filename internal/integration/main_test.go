//go:build integration

package integration

import (
	"os"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit/suite"
)

// binary is the inferspan that all tests run. With INFERSPAN_RACE set it has
// the race detector.
var binary string

func TestMain(m *testing.M) {
	var flags []string
	if os.Getenv("INFERSPAN_RACE") != "" {
		flags = []string{"-race"}
	}
	os.Exit(suite.WithInferspan(m, &binary, flags...))
}

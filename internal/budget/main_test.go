package budget

import (
	"fmt"
	"os"
	"testing"
)

// measured is what the benchmarks of this run came to.
var measured Table

func TestMain(m *testing.M) {
	code := m.Run()
	if err := measured.Write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

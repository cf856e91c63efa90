//go:build e2e_k8s

package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/discover"
)

// heard is a discover.Sink that keeps what it is told.
type heard struct{ said chan string }

func (h heard) Found(endpoints []route.Endpoint) {
	words := make([]string, 0, len(endpoints))
	for _, e := range endpoints {
		words = append(words, e.Address)
	}
	slices.Sort(words)
	h.said <- strings.TrimSpace("found " + strings.Join(words, " "))
}

func (h heard) Lost(err error)   { h.said <- "lost: " + err.Error() }
func (h heard) Failed(err error) { h.said <- "failed: " + err.Error() }

// follow runs a source until the test ends.
func follow(t *testing.T, s discover.Source) heard {
	t.Helper()
	h := heard{said: make(chan string, 10000)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return h
}

// await waits until it is told what begins with want, and returns what it was
// told before that.
func (h heard) await(t *testing.T, want string) (before []string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case what := <-h.said:
			if what == want || strings.HasSuffix(want, "...") && strings.HasPrefix(what, strings.TrimSuffix(want, "...")) {
				return before
			}
			before = append(before, what)
		case <-late:
			t.Fatalf("not told %q, but\n%s", want, strings.Join(before, "\n"))
		}
	}
}

package discover

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/processor/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follow runs s for as long as during takes, in scripted time.
func follow(t *testing.T, s Source, during func(h *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHeard()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, h) }()
		synctest.Wait()
		during(h)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// heard is a Sink that keeps what it is told, each with the time since it began.
type heard struct {
	mu    sync.Mutex
	began time.Time
	said  []string
}

func newHeard() *heard { return &heard{began: time.Now()} }

func (h *heard) Found(endpoints []route.Endpoint) {
	words := []string{"found"}
	for _, e := range endpoints {
		word := e.Address
		if e.Weight != 0 {
			word += fmt.Sprintf("*%d", e.Weight)
		}
		words = append(words, word)
	}
	h.say(strings.Join(words, " "))
}

func (h *heard) Lost(err error)   { h.say("lost: " + err.Error()) }
func (h *heard) Failed(err error) { h.say("failed: " + err.Error()) }

func (h *heard) say(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, time.Since(h.began).String()+" "+what)
}

// want checks what was said since the last time.
func (h *heard) want(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.said); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	h.said = nil
}

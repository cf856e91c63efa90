package logs

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

// open returns a logger and what reads the lines written since the last call.
func open() (s *Sampler, log *slog.Logger, lines func() []string) {
	b := &buffer{}
	s = NewSampler(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return s, slog.New(s), func() []string {
		return strings.Split(strings.TrimSuffix(b.take(), "\n"), "\n")
	}
}

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log, lines := open()
		defer s.Close()
		for i := range Burst + 5 {
			log.Info("failed", "outcome", "timeout", "i", i)
		}
		log.With("pool", "a").Info("failed", "outcome", "timeout")
		log.Info("failed", "outcome", "empty")
		log.Warn("failed", "outcome", "timeout")
		log.WithGroup("g").Info("other", "i", 1)
		var want []string
		for i := range Burst {
			want = append(want, fmt.Sprintf("level=INFO msg=failed outcome=timeout i=%d", i))
		}
		want = append(want, "level=INFO msg=failed outcome=empty", "level=WARN msg=failed outcome=timeout", "level=INFO msg=other g.i=1")
		if diff := cmp.Diff(want, lines()); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}
		bubble.Pass(Interval + time.Millisecond)
		if diff := cmp.Diff([]string{`level=INFO msg="lines left out" of=failed count=6 outcome=timeout`}, lines()); diff != "" {
			t.Errorf("after the interval (-want +got):\n%s", diff)
		}
		log.Info("failed", "outcome", "timeout")
		if diff := cmp.Diff([]string{"level=INFO msg=failed outcome=timeout"}, lines()); diff != "" {
			t.Errorf("in the next interval (-want +got):\n%s", diff)
		}
	})
}

// What was left out is said at the end too, and after it nothing is left out.
func TestSampler_Close(t *testing.T) {
	s, log, lines := open()
	for range Burst + 1 {
		log.Info("failed")
	}
	lines()
	s.Close()
	if diff := cmp.Diff([]string{`level=INFO msg="lines left out" of=failed count=1`}, lines()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	for range 2 * Burst {
		log.Info("failed")
	}
	if n := len(lines()); n != 2*Burst {
		t.Errorf("%d lines after the end, want %d", n, 2*Burst)
	}
}

// Messages from outside can't fill the memory.
func TestSampler_Bounded(t *testing.T) {
	s, _, lines := open()
	for i := range 10 * maxKinds {
		if err := s.Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, fmt.Sprint("text ", i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.counts.kinds); n > maxKinds+1 {
		t.Errorf("%d kinds, want at most %d", n, maxKinds+1)
	}
	if n := len(lines()); n != maxKinds+Burst {
		t.Errorf("%d lines, want %d", n, maxKinds+Burst)
	}
	s.Close()
	if got, want := lines(), []string{fmt.Sprintf(`level=INFO msg="lines left out" of="lines of other kinds" count=%d`, 9*maxKinds-Burst)}; !cmp.Equal(got, want) {
		t.Errorf("at the end %q, want %q", got, want)
	}
}

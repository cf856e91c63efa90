//go:build integration

package integration

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// TestTwentySecondStream takes longer than the 15 s after which Envoy cuts what
// has no timeout of its own. Its first token comes late enough that TTFT can be
// held against what the client saw.
func TestTwentySecondStream(t *testing.T) {
	t.Parallel()
	s := longScript()
	edges, played, errs := make([]*edge, len(forms)), make([]exchange, len(forms)), make([]error, len(forms))
	var wg sync.WaitGroup
	for i, form := range forms {
		edges[i] = startEdge(t, form)
		wg.Go(func() { played[i], errs[i] = edges[i].play(t.Context(), s, chatCall()) })
	}
	wg.Wait()
	for i, form := range forms {
		t.Run(form, func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			edges[i].checkLong(t, s, played[i])
		})
	}
}

// longScript says the role after 1 s, the first of nine tokens after 4 s and the
// last after 20 s.
func longScript() testkit.Script {
	s := chatScript("long", nil)
	role, text, last := s.Pieces[0], s.Pieces[1], s.Pieces[2]
	role.At, last.At = time.Second, 20*time.Second
	s.HeadAt, s.EndAt, s.Pieces = role.At, last.At, []testkit.Piece{role}
	for i := range 9 - 1 {
		text.At = time.Duration(4+2*i) * time.Second
		s.Pieces = append(s.Pieces, text)
	}
	s.Pieces = append(s.Pieces, last)
	return s
}

func (e *edge) checkLong(t *testing.T, s testkit.Script, x exchange) {
	t.Helper()
	if x.Broken || !bytes.Equal(x.Body, s.Body()) {
		t.Errorf("%d of %d bytes after %s, broken %t", len(x.Body), len(s.Body()), x.EndAt, x.Broken)
	}
	if got := e.record(t, x.id)["outcome"]; got != "ok" {
		t.Errorf("outcome %v, want ok", got)
	}
	saw, _ := x.ArrivedAt(len(s.Pieces[0].Data))
	v, _ := testkit.Attr(e.span(t, x.id).GetAttributes(), "inferspan.time_to_first_token")
	seconds, _ := v.(float64)
	ttft := time.Duration(seconds * float64(time.Second))
	if ttft < s.Pieces[1].At || (ttft-saw).Abs() > saw/20 {
		t.Errorf("TTFT %v s, the client saw the first token after %s: want within 5 %%", v, saw)
	}
}

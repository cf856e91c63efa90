//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// Exchanges that Envoy let pass without the filter are counted, from its access log.
func TestUnseenExchanges(t *testing.T) {
	for _, form := range []string{inline, observe} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			const passed = 3
			e := newEdge(t, form)
			e.adapt = strings.NewReplacer("overrides: {}", "disabled: true")
			e.startInferspan(e.config("default"))
			e.startEnvoy()
			for range passed {
				if x := e.mustPlay(t, chatScript("unseen", nil), chatCall()); x.Status != http.StatusOK {
					t.Errorf("status %d", x.Status)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			e.must(testkit.Poll(ctx, func(ctx context.Context) error {
				for name, want := range map[string]int{
					"inferspan_telemetry_exchange_unseen_total": passed, "inferspan_telemetry_access_log_unmatched_total": passed, "inferspan_requests_total": 0,
				} {
					if got, err := counter(ctx, e.inferspan, name); err != nil || got != want {
						return fmt.Errorf("%s is %d, want %d: %w", name, got, want, err)
					}
				}
				return nil
			}))
		})
	}
}

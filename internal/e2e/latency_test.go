//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math"
	"testing"
)

// latencies are the sums and counts, in Prometheus, of exchanges whose tokens are
// all known.
type latencies struct{ itlSum, itlCount, tpotSum, tpotCount float64 }

func (s *stack) latencies(ctx context.Context, job string) (l latencies, err error) {
	for expr, to := range map[string]*float64{
		"inferspan_inter_token_latency_seconds_sum": &l.itlSum, "inferspan_inter_token_latency_seconds_count": &l.itlCount,
		"gen_ai_server_time_per_output_token_seconds_sum": &l.tpotSum, "gen_ai_server_time_per_output_token_seconds_count": &l.tpotCount,
	} {
		if *to, err = s.prometheus.Sum(ctx, fmt.Sprintf(`%s{job=%q, inferspan_token_count="exact"}`, expr, job)); err != nil {
			return l, err
		}
	}
	return l, nil
}

// Of each exchange whose tokens are all known, the mean inter-token latency is the
// time per output token, to the microsecond that records are in.
func TestMeanOfInterTokenLatency(t *testing.T) {
	s := start(t, layout{})
	before := map[string]latencies{}
	for _, r := range s.recordings(t, "chat-continuous-usage", "chat-token-ids", "chat-bytes-logprobs") {
		if _, err := s.play(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for _, job := range []string{overOTLP, scraped} {
			eventually(t, func(ctx context.Context) error {
				now, err := s.latencies(ctx, job)
				if err != nil {
					return err
				}
				was := before[job]
				if now.tpotCount != was.tpotCount+1 {
					return fmt.Errorf("%s, job %s: %v choices, want one more than %v", r.script.Name, job, now.tpotCount, was.tpotCount)
				}
				itl, tpot := (now.itlSum-was.itlSum)/(now.itlCount-was.itlCount), now.tpotSum-was.tpotSum
				if !(math.Abs(itl-tpot) <= 1e-6) {
					return fmt.Errorf("%s, job %s: the mean inter-token latency is %v, the time per output token %v", r.script.Name, job, itl, tpot)
				}
				before[job] = now
				return nil
			})
		}
	}
}

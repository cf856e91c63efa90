package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

func TestSLO_Judge(t *testing.T) {
	within := Thresholds{TTFT: 60 * ms, TPOT: 25 * ms, Duration: 210 * ms}
	ttft, duration := Thresholds{TTFT: 59 * ms}, Thresholds{Duration: 209 * ms}
	for name, c := range map[string]struct {
		limits       Thresholds
		outcome      meter.Outcome
		status       int
		met, counted bool
	}{
		"within, to the nanosecond":        {within, meter.OK, 200, true, true},
		"late":                             {ttft, meter.OK, 200, false, true},
		"slow":                             {Thresholds{TPOT: 24 * ms}, meter.OK, 200, false, true},
		"long":                             {duration, meter.OK, 200, false, true},
		"cancelled in time":                {within, meter.ClientCancelled, 200, false, false},
		"cancelled too late":               {ttft, meter.ClientCancelled, 200, false, true},
		"finished before the client left":  {within, meter.ClientCancelledAfterFinish, 200, true, true},
		"failed in time":                   {within, meter.UpstreamReset, 200, false, true},
		"failed with a status":             {within, meter.HTTPError, 503, false, true},
		"too many":                         {within, meter.HTTPError, 429, false, true},
		"refused":                          {ttft, meter.HTTPError, 400, false, false},
		"rejected, there is no such model": {ttft, meter.Rejected, 404, false, false},
		"rejected, there is no room":       {within, meter.Rejected, 503, false, true},
		"unknown":                          {ttft, meter.Lost, 200, false, false},
	} {
		r := richRecord()
		r.Outcome, r.Status = c.outcome, c.status
		s := SLO{Name: "s", Thresholds: c.limits}
		if met, counted := s.judge(r); met != c.met || counted != c.counted {
			t.Errorf("%s: met %v, counted %v; want %v, %v", name, met, counted, c.met, c.counted)
		}
	}
}

// TestSLO_NothingToMeasure: no token, no time to it: such an exchange says
// nothing of the promise, unless it waited for one beyond its time.
func TestSLO_NothingToMeasure(t *testing.T) {
	r := richRecord()
	r.FirstToken, r.TPOT = meter.Opt[time.Duration]{}, nil
	s := SLO{Name: "s", Thresholds: Thresholds{TTFT: 100 * ms}}
	if _, counted := s.judge(r); counted {
		t.Error("an exchange without tokens is counted")
	}
	r.Outcome, r.NoFirstToken = meter.ClientCancelled, meter.NoTokenCancelled
	if met, counted := s.judge(r); met || !counted {
		t.Error("who gave up after the threshold is not counted")
	}
	r.End = 90 * ms
	if _, counted := s.judge(r); counted {
		t.Error("who gave up before the threshold is counted")
	}
}

func TestSLOMetrics(t *testing.T) {
	c := quiet()
	c.SLOs = []SLO{
		{Name: "all", Thresholds: Thresholds{TTFT: 70 * ms, TPOT: 33 * ms, Duration: 7 * time.Second}, Target: .95},
		{Name: "chat", Operation: "chat", Model: "llama", Pool: "default", Thresholds: Thresholds{TTFT: 50 * ms}, Target: .5},
		{Name: "others", Pool: "other", Thresholds: Thresholds{TTFT: 50 * ms}},
	}
	c.Trace.Keep.Share = meter.Some(0.)
	x := &keepingExporter{}
	tel := open(t, c, x)
	play(tel, richRecord())
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	count := func(name string, met bool) float64 {
		return sample(t, page, fmt.Sprintf(`inferspan_slo_requests_total{%s,inferspan_pool="default",inferspan_slo_met="%v",inferspan_slo_name=%q}`, commonLabels, met, name))
	}
	if count("all", true) != 1 || count("all", false) != -1 || count("chat", false) != 1 || strings.Contains(page, `inferspan_slo_requests_total{inferspan_slo_name="others"`) {
		t.Errorf("all %v, chat %v", count("all", true), count("chat", false))
	}
	if got := sample(t, page, `inferspan_slo_target_ratio{inferspan_slo_name="all"}`); got != .95 {
		t.Errorf("the target is %v", got)
	}
	for _, bound := range []string{
		`time_to_first_token_seconds_bucket{` + commonLabels + `,inferspan_pool="default",le="0.07"} 1`,
		`le="0.033"}`, `le="7.0"}`,
	} {
		if !strings.Contains(page, bound) && !strings.Contains(page, strings.ReplaceAll(bound, "7.0", "7")) {
			t.Errorf("no bucket ends at the threshold: %s", bound)
		}
	}
	s := exchangeSpan(t, x.spans)
	if reason, _ := value(s.Attributes(), keyKeepReason); reason.AsString() != keepSLOMissed {
		t.Errorf("kept because %q", reason.AsString())
	}
}

// TestSLO_Wanted: what a trusted client wants of its exchange goes before what the
// SLO says, each threshold by itself.
func TestSLO_Wanted(t *testing.T) {
	for name, c := range map[string]struct {
		limits, wanted Thresholds
		met            bool
	}{
		"a tighter one":       {Thresholds{TTFT: 60 * ms}, Thresholds{TTFT: 59 * ms}, false},
		"a looser one":        {Thresholds{TTFT: 50 * ms}, Thresholds{TTFT: 60 * ms}, true},
		"another one too":     {Thresholds{TTFT: 60 * ms}, Thresholds{TPOT: 24 * ms}, false},
		"the SLO's own stays": {Thresholds{TTFT: 59 * ms}, Thresholds{TPOT: time.Second}, false},
		"only its own":        {Thresholds{}, Thresholds{Duration: 209 * ms}, false},
	} {
		r := richRecord()
		r.Wanted = c.wanted
		s := SLO{Name: "s", Thresholds: c.limits}
		if met, counted := s.judge(r); met != c.met || !counted {
			t.Errorf("%s: met %v, counted %v; want %v", name, met, counted, c.met)
		}
	}
}

// TestSLO_WantedByNoOther: where no SLO covers it, an exchange is judged by what
// its client wants, and counted apart.
func TestSLO_WantedByNoOther(t *testing.T) {
	c := quiet()
	c.SLOs = []SLO{{Name: "others", Model: "other", Thresholds: Thresholds{TTFT: ms}}}
	tel := open(t, c, nil)
	r := richRecord()
	r.Wanted = Thresholds{TTFT: time.Second}
	play(tel, r)
	play(tel, richRecord())
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	series := fmt.Sprintf(`inferspan_slo_requests_total{%s,inferspan_pool="default",inferspan_slo_met="true",inferspan_slo_name="request"}`, commonLabels)
	if got := sample(t, page, series); got != 1 || strings.Count(page, "inferspan_slo_requests_total{") != 1 {
		t.Errorf("%v exchanges are counted, want the one", got)
	}
}

func TestSLOConfig_Invalid(t *testing.T) {
	some := Thresholds{TTFT: ms}
	for want, list := range map[string][]SLO{
		"slo 0 has no name":        {{Thresholds: some}},
		`there are two slos "a"`:   {{Name: "a", Thresholds: some}, {Name: "a", Thresholds: some}},
		`slo "a" has no threshold`: {{Name: "a"}},
		`no slo may be named "request", which is that of a client's own thresholds`: {{Name: "request", Thresholds: some}},
	} {
		c := quiet()
		c.SLOs = list
		if _, err := New(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

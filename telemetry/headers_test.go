package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

func withHeaders() Config {
	c := quiet()
	c.HeaderAttributes = []HeaderAttribute{{Name: "team", MaxValues: 2}, {Name: "user"}}
	return c
}

func capturedRecord(team string) *meter.Record {
	r := richRecord()
	r.Captured = []meter.Captured{{Attribute: "team", Value: team}, {Attribute: "user", Value: "u\n1"}}
	return r
}

// TestHeaderAttributes: all on the span; on metrics only those that are to be,
// and only on those that count.
func TestHeaderAttributes(t *testing.T) {
	x := &keepingExporter{}
	tel := open(t, withHeaders(), x)
	play(tel, capturedRecord("search"))
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	s := exchangeSpan(t, x.spans)
	for k, want := range map[string]string{"team": "search", "user": "u\uFFFD1"} {
		found := false
		for _, kv := range s.Attributes() {
			found = found || string(kv.Key) == k && kv.Value.AsString() == want
		}
		if !found {
			t.Errorf("%s=%q is not on the span", k, want)
		}
	}
	for _, m := range Metrics() {
		name := strings.ReplaceAll(m.Name, ".", "_")
		for line := range strings.Lines(page) {
			if !strings.HasPrefix(line, name) || strings.HasPrefix(line, name+"_") && !strings.HasPrefix(line, name+"_total{") {
				continue
			}
			if has := strings.Contains(line, `team="search"`); has != m.Headers {
				t.Errorf("%s: the team is there: %v, want %v: %s", m.Name, has, m.Headers, line)
			}
			if strings.Contains(line, "user=") {
				t.Errorf("the user is on a metric: %s", line)
			}
		}
	}
}

// TestHeaderValuesAreBounded: by their number, and by who has a model server's
// answer.
func TestHeaderValuesAreBounded(t *testing.T) {
	tel := open(t, withHeaders(), nil)
	refused := capturedRecord("nobody")
	refused.Outcome, refused.Status = meter.HTTPError, 404
	play(tel, refused)
	for i := range 5 {
		play(tel, capturedRecord(fmt.Sprint("team-", i)))
	}
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	for team, want := range map[string]float64{"team-0": 9, "team-1": 9, "team-2": -1, otherValue: 4 * 9, "nobody": -1} {
		series := fmt.Sprintf(`inferspan_output_tokens_total{%s,inferspan_pool="default",inferspan_usage_source="usage",team=%q}`, commonLabels, team)
		if got := sample(t, page, series); got != want {
			t.Errorf("%s has %v tokens, want %v", team, got, want)
		}
	}
	if got := sample(t, page, `inferspan_telemetry_label_folded_total{inferspan_reason="header"}`); got != 4 {
		t.Errorf("%v values were folded, want 4", got)
	}
}

func TestHeaderAttributes_Invalid(t *testing.T) {
	for _, all := range [][]HeaderAttribute{{{}}, {{Name: "a"}, {Name: "a", MaxValues: 1}}} {
		c := quiet()
		c.HeaderAttributes = all
		if _, err := New(t.Context(), c); err == nil {
			t.Errorf("%+v is accepted", all)
		}
	}
}

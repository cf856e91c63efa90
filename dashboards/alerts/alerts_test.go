// Package alerts_test checks the alerts without a Prometheus; internal/e2e runs them
// in one.
package alerts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/inferspan/inferspan/dashboards/internal/series"
)

// rules is what the test reads of a file of rules.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

var (
	seriesPattern  = regexp.MustCompile(`((?:inferspan|gen_ai)_[a-z_]+)(\{[^}]*\}|\[|\)| )`)
	matcherPattern = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	byPattern      = regexp.MustCompile(`by \([^)]*\)`)
	pagePattern    = regexp.MustCompile("`(Inferspan[A-Z][A-Za-z]+)`")
	groupPattern   = regexp.MustCompile(`by \(([^)]*)\) \((?:(?:rate|increase|present_over_time)\()?([a-z_]+)`)
)

// TestAlerts: they ask for what there is, say what to do, and are those that stand
// in the page for operations.
func TestAlerts(t *testing.T) {
	known, err := series.Exported()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("inferspan.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var alerts, explained []string
	for _, m := range pagePattern.FindAllStringSubmatch(string(page), -1) {
		explained = append(explained, m[1])
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s: %v, %v", r.Alert, r.Annotations, r.Labels)
			}
			used := false
			labelsOf := func(name string) []string {
				labels, ok := known[name]
				if !ok {
					t.Errorf("%s: we export no series %s", r.Alert, name)
				}
				return labels
			}
			groups := groupPattern.FindAllStringSubmatch(r.Expr, -1)
			for _, g := range groups {
				for by := range strings.SplitSeq(g[1], ", ") {
					if !slices.Contains(labelsOf(g[2]), by) {
						t.Errorf("%s: %s has no label %s to group by", r.Alert, g[2], by)
					}
				}
			}
			// What groups by labels is no series.
			expr := byPattern.ReplaceAllString(r.Expr, "") + " "
			for _, s := range seriesPattern.FindAllStringSubmatch(expr, -1) {
				used = true
				labels := labelsOf(s[1])
				for _, m := range matcherPattern.FindAllStringSubmatch(s[2], -1) {
					if !slices.Contains(labels, m[1]) {
						t.Errorf("%s: %s has no label %s", r.Alert, s[1], m[1])
					}
				}
			}
			if !used {
				t.Errorf("%s: no series in %s", r.Alert, r.Expr)
			}
		}
	}
	slices.Sort(alerts)
	slices.Sort(explained)
	if explained = slices.Compact(explained); len(alerts) == 0 || !slices.Equal(alerts, explained) {
		t.Errorf("the alerts are\n%q, docs/operations.md explains\n%q", alerts, explained)
	}
}

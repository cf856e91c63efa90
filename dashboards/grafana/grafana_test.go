package grafana

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/dashboards/internal/series"
	"github.com/inferspan/inferspan/processor/meter"
)

// panel is what the tests read of a panel.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ UID string }
	FieldConfig struct {
		Defaults struct{ Unit, NoValue string }
	}
	Targets []struct {
		Datasource struct{ UID string }
		RefID      string
		Expr       string
		Exemplar   bool
	}
	GridPos struct{ X, Y, W, H int }
}

type model struct {
	Editable   bool
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Refresh    int
			Query      any
			Datasource struct{ UID string }
		}
	}
}

func read(t *testing.T) (model, []panel) {
	t.Helper()
	b, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	var m model
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var panels []panel
	for _, p := range m.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	return m, panels
}

func TestFileIsCurrent(t *testing.T) {
	want, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("inferspan.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("inferspan.json is not what the code makes: run make dashboards")
	}
}

// exported maps what Prometheus calls our series to the labels that each has.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	all, err := series.Exported()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	selectorPattern = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcherPattern  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"`)
	groupPattern    = regexp.MustCompile(`by \(([^)]*)\) \(\(?(?:rate\()?([a-z_]+)\{`)
	ratePattern     = regexp.MustCompile(`(\w+)\(([a-z_]+)\{[^}]*\}\[([^\]]*)\]\)`)
)

func TestQueriesAskForWhatWeExport(t *testing.T) {
	known := exported(t)
	_, panels := read(t)
	for _, p := range panels {
		for _, target := range p.Targets {
			selectors := selectorPattern.FindAllStringSubmatch(target.Expr, -1)
			if len(selectors) == 0 {
				t.Errorf("%s: no selector in %s", p.Title, target.Expr)
			}
			for _, s := range selectors {
				labels, ok := known[s[1]]
				if !ok {
					t.Errorf("%s: we export no series %s", p.Title, s[1])
				}
				for _, m := range matcherPattern.FindAllStringSubmatch(s[2], -1) {
					if !slices.Contains(labels, m[1]) {
						t.Errorf("%s: %s has no label %s, it has %v", p.Title, s[1], m[1], labels)
					}
				}
			}
			for _, g := range groupPattern.FindAllStringSubmatch(target.Expr, -1) {
				for by := range strings.SplitSeq(g[1], ", ") {
					if !slices.Contains(known[g[2]], by) {
						t.Errorf("%s: %s has no label %s to group by", p.Title, g[2], by)
					}
				}
			}
		}
	}
}

// Every query is of the chosen job and instance; one about exchanges is of the
// chosen model and pool too. What is about ourselves has neither.
func TestQueriesHoldToTheVariables(t *testing.T) {
	known := exported(t)
	_, panels := read(t)
	for _, p := range panels {
		for _, target := range p.Targets {
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") {
				t.Errorf("%s: parentheses don't close: %s", p.Title, target.Expr)
			}
			selectors := selectorPattern.FindAllStringSubmatch(target.Expr, -1)
			want := ours
			if slices.Contains(known[selectors[0][1]], labelModel) {
				want = chosen
			}
			for _, s := range selectors {
				if s[2] != want && !strings.HasPrefix(s[2], want+", ") {
					t.Errorf("%s: %s does not begin with %s", p.Title, s[0], want)
				}
			}
		}
	}
}

// A counter says nothing but how it grows, over an interval that the scrapes
// fill; and what is not a counter has no rate.
func TestCountersAreReadAsRates(t *testing.T) {
	_, panels := read(t)
	for _, p := range panels {
		for _, target := range p.Targets {
			rated := map[string]bool{}
			for _, r := range ratePattern.FindAllStringSubmatch(target.Expr, -1) {
				rated[r[2]] = true
				if r[1] != "rate" || r[3] != "$__rate_interval" {
					t.Errorf("%s: %s over [%s] of %s, want rate over [$__rate_interval]", p.Title, r[1], r[3], r[2])
				}
			}
			for _, s := range selectorPattern.FindAllStringSubmatch(target.Expr, -1) {
				counter := strings.HasSuffix(s[1], "_total") || strings.HasSuffix(s[1], "_bucket") || strings.HasSuffix(s[1], "_count") || strings.HasSuffix(s[1], "_sum")
				if counter != rated[s[1]] {
					t.Errorf("%s: %s: counter %v, read as a rate %v", p.Title, s[1], counter, rated[s[1]])
				}
			}
		}
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	_, panels := read(t)
	titles := map[string]string{}
	for _, p := range panels {
		d := p.FieldConfig.Defaults
		if p.Title == "" || p.Description == "" || d.Unit == "" || d.NoValue == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q lacks a title, a description, a unit, a word for no data, or a query", p.ID, p.Title)
		}
		if strings.HasSuffix(p.Title, ".") || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s: titles are no sentences, descriptions are", p.Title)
		}
		if other, ok := titles[p.Title+p.Type]; ok {
			t.Errorf("two panels %q: %s", p.Title, other)
		}
		titles[p.Title+p.Type] = p.Description
		exemplars := 0
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: a query goes to the data source %q", p.Title, target.Datasource.UID)
			}
			if target.Exemplar {
				exemplars++
			}
		}
		if p.Datasource.UID != "${datasource}" || exemplars > 1 {
			t.Errorf("%s: data source %q, %d queries with exemplars", p.Title, p.Datasource.UID, exemplars)
		}
	}
}

func TestVariables(t *testing.T) {
	m, _ := read(t)
	if m.Editable {
		t.Error("the dashboard is editable: changes belong in its code")
	}
	var names []string
	for _, v := range m.Templating.List {
		names = append(names, v.Name)
		if v.Type != "query" {
			continue
		}
		if v.Refresh != 2 || v.Datasource.UID != "${datasource}" {
			t.Errorf("variable %s: refresh %d, data source %q; want 2, on a change of the time range, and ${datasource}", v.Name, v.Refresh, v.Datasource.UID)
		}
		q, ok := v.Query.(string)
		if !ok || !strings.HasPrefix(q, "label_values(inferspan_") {
			t.Errorf("variable %s: query %v, want the values of a label of ours", v.Name, v.Query)
		}
	}
	if want := []string{"datasource", "job", "instance", "model", "pool"}; !slices.Equal(names, want) {
		t.Errorf("variables %v, want %v", names, want)
	}
}

func TestPanelsStandBesideEachOther(t *testing.T) {
	m, _ := read(t)
	taken := map[[2]int]string{}
	for i, p := range m.Panels {
		if p.ID != i+1 {
			t.Errorf("%s has the id %d, want %d", p.Title, p.ID, i+1)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s at %d,%d lies over %q or beyond the edge", p.Title, x, y, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// What the panel calls failed is what the record's class says.
func TestFailedIsTheClass(t *testing.T) {
	status := regexp.MustCompile("^(?:" + failedStatus + ")$")
	for s := 400; s < 600; s++ {
		if want := meter.HTTPError.Class(s) == meter.ClassFailed; status.MatchString(strconv.Itoa(s)) != want {
			t.Errorf("status %d: failed is %v by its class", s, want)
		}
	}
	all := outcomes(meter.ClassDone, meter.ClassCancelled, meter.ClassFailed, meter.ClassRefused, meter.ClassRejected, meter.ClassUnknown)
	if len(all) != 14 {
		t.Errorf("%d outcomes, want 14: %v", len(all), all)
	}
}

func TestQueriesOfTheFile(t *testing.T) {
	b, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	queries, err := Queries(b)
	if err != nil {
		t.Fatal(err)
	}
	_, panels := read(t)
	n := 0
	for _, p := range panels {
		n += len(p.Targets)
	}
	if len(queries) != n || n == 0 {
		t.Errorf("%d queries, want %d", len(queries), n)
	}
	if _, err := Queries([]byte("{")); err == nil {
		t.Error("half a dashboard was read")
	}
}

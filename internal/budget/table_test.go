package budget

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var table Table
	var out strings.Builder
	if err := table.Write(&out); err != nil || out.Len() != 0 {
		t.Errorf("an empty table is %q, %v", &out, err)
	}
	for _, r := range []Row{
		{What: "a frame", Got: 1.2, Limit: 1, Unit: "x noop"},
		{What: "a stream", Got: 16384, Limit: 16384, Unit: "B"},
		{What: "a frame", Got: 1.01, Limit: 1, Unit: "x noop"},
	} {
		table.Add(r)
	}
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `what      measured     budget  
a frame   1.01 x noop  1       ABOVE
a stream  1.638e+04 B  1.638e+04  within
`
	if got := strings.Join(strings.Fields(out.String()), " "); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

package meter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/meter"
)

// What the server says of speculative decoding is on the record as it said it,
// null too, and survives the record's JSON.
func TestSpeculativeDecoding(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		``:     `"tokens_per_second":2}`,
		`null`: `"tokens_per_second":2,"speculative_decoding":null}`,
		`{"num_draft_tokens":12,"acceptance_histogram":[1,3]}`: `"tokens_per_second":2,"speculative_decoding":{"num_draft_tokens":12,"acceptance_histogram":[1,3]}}`,
		`{"x":` + strings.Repeat("1", 2000) + `}`:              `"tokens_per_second":2}`,
		`{"x":no}`: `"tokens_per_second":2}`,
	} {
		m := meter.New(meter.Start{Path: "/v1/chat/completions"}, meter.Options{})
		m.Headers(0, 200, "text/event-stream", "")
		member := ""
		if value != "" {
			member = `,"speculative_decoding":` + value
		}
		m.Observe(0, []byte(`data: {"choices":[],"metrics":{"tokens_per_second":2`+member+"}}\n\n"))
		r := m.Close(0, meter.CauseEnd)
		j := string(r.AppendJSON(nil))
		if !strings.Contains(j, want) {
			t.Errorf("%.80s:\n got %s\nwant %s", value, j, want)
		}
		var back meter.Record
		if err := json.Unmarshal([]byte(j), &back); err != nil {
			t.Fatal(err)
		}
		if *back.ServerMetrics != *r.ServerMetrics {
			t.Errorf("%.80s: back %+v, want %+v", value, *back.ServerMetrics, *r.ServerMetrics)
		}
	}
}

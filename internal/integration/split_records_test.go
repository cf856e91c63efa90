//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameRecords plays every recording inline and split, through configurations
// that name no models, so that nothing is answered by inferspan: the records are
// the same, but for ids, times and how Envoy cut the frames.
func TestSameRecords(t *testing.T) {
	all := recordings(t)
	records := map[string][]map[string]any{}
	for _, form := range []string{inline, split, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			e := newEdge(t, form)
			e.startInferspan(fmt.Sprintf("pools: [{name: default, endpoints: [%q, %q]}]\n", e.vllm[0].Addr(), e.vllm[1].Addr()))
			e.startEnvoy()
			for i, x := range e.replay(t, all) {
				e.check(t, all[i], x)
				records[form] = append(records[form], essence(e.record(t, x.id)))
			}
		})
	}
	for _, form := range []string{split, splitDuplex} {
		if len(records[form]) != len(all) {
			t.Fatalf("%s has %d records, want %d", form, len(records[form]), len(all))
		}
		for i, r := range all {
			if diff := cmp.Diff(records[inline][i], records[form][i]); diff != "" {
				t.Errorf("%s, %s (-inline +split):\n%s", r.name, form, diff)
			}
		}
	}
}

// essence is a record with only the presence of what differs from one exchange
// to the next, and without what chance decides: whether Envoy's account came
// before the end, and how the frames were cut.
func essence(record map[string]any) map[string]any {
	for _, name := range []string{"frames", "shared_frames", "sent_bytes", "client_drain_us"} {
		delete(record, name)
	}
	route, _ := record["route"].(map[string]any)
	presence(route, "endpoint", "served", "candidates", "start_us", "duration_us")
	presence(record, "request_id", "trace_id", "span_id", "start")
	for name := range record {
		if strings.HasSuffix(name, "_us") {
			presence(record, name)
		}
	}
	return record
}

func presence(m map[string]any, names ...string) {
	for _, name := range names {
		m[name] = m[name] != nil
	}
}

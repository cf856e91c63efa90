package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/inferspan/inferspan/processor/meter"
)

// TestUnknownModelIsNamedAfterItWasServed: a client's word makes no series.
func TestUnknownModelIsNamedAfterItWasServed(t *testing.T) {
	tel := open(t, quiet(), nil)
	tell := func(model string, status int, outcome meter.Outcome) {
		r := richRecord()
		r.RequestModel, r.Status, r.Outcome = meter.Some(model), status, outcome
		play(tel, r)
	}
	tell("made-up", 404, meter.HTTPError)
	tell("llama", 404, meter.HTTPError)
	tell("qwen", 200, meter.OK)
	tell("qwen", 503, meter.HTTPError)
	worked(tel)
	page := scrape(t, tel, "")
	shut(t, tel)
	for model, want := range map[string]bool{"made-up": false, otherValue: true, "llama": true, "qwen": true} {
		if got := strings.Contains(page, fmt.Sprintf("gen_ai_request_model=%q", model)); got != want {
			t.Errorf("%s named: %v, want %v", model, got, want)
		}
	}
	if got := sample(t, page, `inferspan_telemetry_label_folded_total{inferspan_reason="model_unproven"}`); got != 1 {
		t.Errorf("%v folded, want 1", got)
	}
}

// TestFirstTokenProvesAModel: where nobody told the status.
func TestFirstTokenProvesAModel(t *testing.T) {
	tel := open(t, quiet(), nil)
	tel.First(meter.ReachedFirstByte, ms, meter.Labels{Operation: "chat", Model: "qwen"})
	tel.First(meter.ReachedFirstToken, ms, meter.Labels{Operation: "chat", Model: "qwen"})
	page := scrape(t, tel, "")
	shut(t, tel)
	if !strings.Contains(page, `time_to_first_byte_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="_OTHER"}`) ||
		!strings.Contains(page, `time_to_first_token_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="qwen"}`) {
		t.Errorf("page:\n%s", page)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	l := newLabels([]string{"pinned"}, []string{"ours"})
	for i := range 2 * maxModels {
		l.get("chat", fmt.Sprint("model-", i), "", true)
	}
	if n := len(l.all()); n != maxModels+1 {
		t.Errorf("%d label sets, want %d", n, maxModels+1)
	}
	if _, why := l.get("chat", "one more", "", true); why != foldFull {
		t.Errorf("folded because of %q, want %q", why, foldFull)
	}
	if _, why := l.get("chat", "pinned", "", false); why != "" {
		t.Errorf("a configured model was folded: %s", why)
	}
	// Pools that nobody configured come by hand-overs.
	for i := range 2 * maxPools {
		l.get("chat", "pinned", fmt.Sprint("pool-", i), true)
	}
	if _, why := l.get("chat", "pinned", "pool-x", true); why != foldFull {
		t.Errorf("a pool was folded because of %q, want %q", why, foldFull)
	}
	if set, why := l.get("chat", "pinned", "ours", true); why != "" || !slices.Contains(set.attributes, keyPool.String("ours")) {
		t.Errorf("a configured pool was folded: %s", why)
	}
	for i := range maxPools * maxModels {
		l.get("chat", fmt.Sprint("model-", i/maxPools), fmt.Sprint("pool-", i%maxPools), true)
	}
	// That of all others was made before, without a pool.
	if n := len(l.all()); n != maxLabelSets {
		t.Errorf("%d label sets, want %d", n, maxLabelSets)
	}
	set, _ := l.get("chat", "pinned", "", true)
	for i := range 2 * maxVariants {
		set.with(variant{status: i + 1})
	}
	if len(set.variants) > maxVariants {
		t.Errorf("%d variants kept, at most %d are allowed", len(set.variants), maxVariants)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("llama-3.1-8b")
	f.Add(strings.Repeat("ä", 100))
	f.Add("a\x00\xff\n" + strings.Repeat("x", 200))
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if len(got) > maxText || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("clean(%q) = %q", s, got)
		}
		if clean(got) != got {
			t.Errorf("clean(%q) changes what is clean: %q", s, got)
		}
	})
}

package processor

import (
	"slices"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

func TestWishes(t *testing.T) {
	wish := wire.Header{Name: "X-Inferspan-Trace", Value: "force"}
	secret := wire.Header{Name: "x-inferspan-secret", Value: "s3cret"}
	shared := Trusted{Header: "X-Inferspan-Secret", Value: "s3cret"}
	for name, c := range map[string]struct {
		trusted Trusted
		headers []wire.Header
		want    string
	}{
		"trusted":         {shared, []wire.Header{wish, secret}, "force"},
		"no wish":         {shared, []wire.Header{secret}, ""},
		"no secret":       {shared, []wire.Header{wish}, ""},
		"another":         {shared, []wire.Header{wish, {Name: secret.Name, Value: "s3cret "}}, ""},
		"prefix":          {shared, []wire.Header{wish, {Name: secret.Name, Value: "s3c"}}, ""},
		"empty":           {shared, []wire.Header{wish, {Name: secret.Name}}, ""},
		"guessed twice":   {shared, []wire.Header{wish, secret, {Name: secret.Name, Value: "x"}}, ""},
		"nobody":          {Trusted{}, []wire.Header{wish, secret, {}}, ""},
		"no value is set": {Trusted{Header: "x-envoy-internal"}, []wire.Header{wish, {Name: "x-envoy-internal"}}, ""},
	} {
		if got, _, _ := c.trusted.wishes(c.headers); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWishes_Thresholds(t *testing.T) {
	shared := Trusted{Header: "x-inferspan-secret", Value: "s3cret"}
	secret := wire.Header{Name: shared.Header, Value: shared.Value}
	h := func(name, value string) wire.Header { return wire.Header{Name: name, Value: value} }
	for name, c := range map[string]struct {
		headers []wire.Header
		want    meter.Thresholds
	}{
		"ours": {
			[]wire.Header{secret, h("X-Inferspan-SLO-TTFT-ms", "500"), h("x-inferspan-slo-tpot-ms", "30.5"), h("x-inferspan-slo-duration-ms", "60000")},
			meter.Thresholds{TTFT: 500 * time.Millisecond, TPOT: 30500 * time.Microsecond, Duration: time.Minute},
		},
		"a gateway's":        {[]wire.Header{secret, h("x-llm-d-slo-ttft-ms", "200"), h("x-slo-tpot-ms", "50")}, meter.Thresholds{TTFT: 200 * time.Millisecond, TPOT: 50 * time.Millisecond}},
		"the new name first": {[]wire.Header{secret, h("x-slo-ttft-ms", "1"), h("x-llm-d-slo-ttft-ms", "2")}, meter.Thresholds{TTFT: 2 * time.Millisecond}},
		"ours first":         {[]wire.Header{secret, h("x-slo-ttft-ms", "1"), h("x-inferspan-slo-ttft-ms", "3")}, meter.Thresholds{TTFT: 3 * time.Millisecond}},
		"what is no time":    {[]wire.Header{secret, h("x-inferspan-slo-ttft-ms", "fast"), h("x-slo-ttft-ms", "4")}, meter.Thresholds{TTFT: 4 * time.Millisecond}},
		"none of them": {
			[]wire.Header{secret, h("x-slo-ttft-ms", "0"), h("x-slo-tpot-ms", "-1"), h("x-llm-d-slo-ttft-ms", "NaN"), h("x-llm-d-slo-tpot-ms", "1e300")},
			meter.Thresholds{},
		},
		"nobody's": {[]wire.Header{h("x-inferspan-slo-ttft-ms", "500")}, meter.Thresholds{}},
	} {
		if _, got, _ := shared.wishes(c.headers); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWishes_Priority(t *testing.T) {
	shared := Trusted{Header: "x-inferspan-secret", Value: "s3cret"}
	secret := wire.Header{Name: shared.Header, Value: shared.Value}
	f := func(trusted Trusted, want int, headers ...wire.Header) {
		t.Helper()
		if _, _, got := trusted.wishes(headers); got != want {
			t.Errorf("the priority of %v is %d, want %d", headers, got, want)
		}
	}
	says := func(v string) wire.Header { return wire.Header{Name: "X-Inferspan-Priority", Value: v} }
	f(shared, -1, secret, says("-1"))
	f(shared, 7, says("7"), secret, says("9"))
	f(shared, 0, secret)
	for _, v := range []string{"", "high", "1.5", " 1", "-", "3000000000", "0x10"} {
		f(shared, 0, secret, says(v))
	}
	f(shared, 0, says("-1"))
	f(Trusted{}, 0, secret, says("-1"))
}

// TestBaggage: of clients whose trace context is not continued it is removed, in
// every mode, and elsewhere left alone.
func TestBaggage(t *testing.T) {
	for _, mode := range []bodyMode{streamed, buffered, partial, duplex} {
		for _, drop := range []bool{false, true} {
			b := newBench(t, func(c *Config) { c.DropBaggage = drop })
			e := b.inline(mode, streamed)
			got := play(t, e, mode, streamed, shape{
				head:    append(chatHead(), "Baggage", "user=alice", "baggage", "tier=gold"),
				request: []string{`{"model":"m"}`}, response: []string{"{}"},
			})
			e.hangUp()
			b.one()
			want := []string(nil)
			if drop {
				want = []string{"baggage"}
			}
			if !slices.Equal(got.removed, want) {
				t.Errorf("%s: removed are %v, want %v", mode, got.removed, want)
			}
		}
	}
}

// TestWishesCount: in every mode, and neither they nor the secret go on to the
// server.
func TestWishesCount(t *testing.T) {
	for _, mode := range []bodyMode{streamed, buffered, partial, duplex} {
		b := newBench(t, func(c *Config) { c.Trusted = Trusted{Header: "x-inferspan-secret", Value: "s3cret"} })
		e := b.inline(mode, streamed)
		got := play(t, e, mode, streamed, shape{
			head:    append(chatHead(), "x-inferspan-trace", "force,events", "x-inferspan-slo-ttft-ms", "500", "x-inferspan-priority", "-3", "x-inferspan-secret", "s3cret"),
			request: []string{`{"model":"m"}`}, response: []string{"{}"},
		})
		e.hangUp()
		if wanted := b.one().Wanted; wanted != (meter.Thresholds{TTFT: 500 * time.Millisecond}) {
			t.Errorf("%s: the record wants %+v", mode, wanted)
		}
		if !slices.Contains(got.removed, wishHeader) || !slices.Contains(got.removed, "x-inferspan-secret") {
			t.Errorf("%s: removed are %v", mode, got.removed)
		}
		if !slices.Contains(got.removed, priorityHeader) || len(b.router.asked) != 1 || b.router.asked[0].Priority != -3 {
			t.Errorf("%s: the router was asked %+v", mode, b.router.asked)
		}
		if begins := b.telemetry.begins; len(begins) != 1 || begins[0].Wish != "force,events" {
			t.Errorf("%s: telemetry got %+v", mode, begins)
		}
	}
}

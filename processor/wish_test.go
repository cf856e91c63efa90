package processor

import (
	"slices"
	"testing"

	"github.com/inferspan/inferspan/processor/wire"
)

func TestWishOf(t *testing.T) {
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
		if got := c.trusted.wishOf(c.headers); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWishReachesTelemetry: in every mode, and neither the wish nor the secret
// goes on to the server.
func TestWishReachesTelemetry(t *testing.T) {
	for _, mode := range []bodyMode{streamed, buffered, partial, duplex} {
		b := newBench(t, func(c *Config) { c.Trusted = Trusted{Header: "x-inferspan-secret", Value: "s3cret"} })
		e := b.inline(mode, streamed)
		got := play(t, e, mode, streamed, shape{
			head:    append(chatHead(), "x-inferspan-trace", "force,events", "x-inferspan-secret", "s3cret"),
			request: []string{`{"model":"m"}`}, response: []string{"{}"},
		})
		e.hangUp()
		b.one()
		if !slices.Contains(got.removed, wishHeader) || !slices.Contains(got.removed, "x-inferspan-secret") {
			t.Errorf("%s: removed are %v", mode, got.removed)
		}
		if begins := b.telemetry.begins; len(begins) != 1 || begins[0].Wish != "force,events" {
			t.Errorf("%s: telemetry got %+v", mode, begins)
		}
	}
}

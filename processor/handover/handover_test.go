package handover

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
)

// notCarried are the fields that the observing side has from elsewhere.
var notCarried = map[string]bool{
	"Handover.Asked.Dialect":  true, // from the path
	"Handover.Route.Served":   true, // from the response
	"Handover.Route.Attempts": true,
}

// full is a hand-over in which no field is zero but those that are not carried:
// a field that is new in one of its types is there too.
func full(t *testing.T) Handover {
	t.Helper()
	var h Handover
	fill(t, "Handover", reflect.ValueOf(&h).Elem())
	h.Start = time.Unix(1, 987654321).UTC()
	h.Source = meter.StartEnvoy
	return h
}

func fill(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if notCarried[path] {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(-0.5)
	case reflect.String:
		v.SetString("text of " + v.Type().String())
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(i + 1))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, path, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	default:
		t.Fatalf("%s is a %s: say here how it is filled", path, v.Kind())
	}
}

// Every field arrives. Where this fails for a field that is new, hand it over
// and raise the version.
func TestRoundTrip(t *testing.T) {
	least := Handover{Start: time.Unix(1, 0).UTC(), Source: meter.StartArrival, Asked: dialect.Request{N: -1, MaxTokens: -1}}
	for name, h := range map[string]Handover{"full": full(t), "least": least} {
		for _, k := range []Key{nil, Key("a secret of 16 b")} {
			value := k.Encode(&h, "req-1")
			got, err := k.Decode(value, "req-1")
			if err != nil {
				t.Fatalf("%s, key %t: %v in %s", name, k != nil, err, value)
			}
			if diff := cmp.Diff(h, got); diff != "" {
				t.Errorf("%s, key %t (-handed +got):\n%s", name, k != nil, diff)
			}
		}
	}
}

// The value's length is bounded, and what matters least is left out first.
func TestCut(t *testing.T) {
	long := strings.Repeat("s", 1500)
	for name, c := range map[string]struct {
		change func(h *Handover)
		want   func(h *Handover)
	}{
		"fits": {func(*Handover) {}, func(*Handover) {}},
		"candidates": {
			func(h *Handover) { h.Trace.State, h.Trace.LinkState = long, long[:1300] },
			func(h *Handover) { h.Route.Candidates = nil },
		},
		"the client's state": {
			func(h *Handover) { h.Trace.State, h.Trace.LinkState = long, long },
			func(h *Handover) { h.Route.Candidates, h.Trace.LinkState = nil, "" },
		},
		"all state": {
			func(h *Handover) { h.Trace.State, h.Asked.Model = long+long, long[:dialect.MaxModel] },
			func(h *Handover) { h.Route.Candidates, h.Trace.LinkState, h.Trace.State = nil, "", "" },
		},
		"a name beyond its limit": {
			func(h *Handover) { h.Asked.Model = long },
			func(h *Handover) { h.Asked.Model = long[:dialect.MaxModel] },
		},
		"numbers beyond theirs": {
			func(h *Handover) { h.Route.Start, h.Elapsed = -time.Second, 48*time.Hour },
			func(h *Handover) { h.Route.Start, h.Elapsed = 0, 24*time.Hour },
		},
	} {
		for _, k := range []Key{nil, Key("a secret of 16 b")} {
			h := full(t)
			h.Route.Candidates = []string{strings.Repeat("1", maxName), strings.Repeat("2", maxName)}
			c.change(&h)
			value := k.Encode(&h, "")
			if len(value) > MaxLen {
				t.Errorf("%s: %d bytes, want %d at most", name, len(value), MaxLen)
			}
			c.want(&h)
			got, err := k.Decode(value, "")
			if diff := cmp.Diff(h, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
	}
}

func TestDecode_Failure(t *testing.T) {
	h := full(t)
	const id = "req-1"
	k, other := Key("a secret of 16 b"), Key("another of 16 by")
	plain, signed := Key(nil).Encode(&h, id), k.Encode(&h, id)
	payload := strings.TrimPrefix(plain, version+".")
	f := func(what string, k Key, value, id string, want error) {
		t.Helper()
		got, err := k.Decode(value, id)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if diff := cmp.Diff(Handover{}, got); diff != "" {
			t.Errorf("%s: something was read (-want +got):\n%s", what, diff)
		}
	}
	f("nothing", nil, "", id, ErrMalformed)
	f("no version", nil, payload, id, ErrMalformed)
	f("an empty version", nil, "."+payload, id, ErrMalformed)
	f("words", nil, "abc."+payload, id, ErrMalformed)
	f("another version", nil, "2."+payload, id, ErrVersion)
	f("another version, signed", k, "2."+payload+".AA", id, ErrVersion)
	f("no base64", nil, "1.!"+payload, id, ErrMalformed)
	f("padding", nil, plain+"=", id, ErrMalformed)
	f("a line's end", nil, "1.\n"+payload, id, ErrMalformed)
	f("more", nil, plain+"AAAA", id, ErrMalformed)
	f("too long", nil, plain+strings.Repeat("A", MaxLen), id, ErrMalformed)
	f("unsigned", k, plain, id, ErrUnsigned)
	f("by another key", other, signed, id, ErrForged)
	f("of another request", k, signed, "req-2", ErrForged)
	f("half a signature", k, signed[:len(signed)-4], id, ErrForged)
	f("no signature behind the point", k, plain+".", id, ErrForged)
	f("another payload", k, version+".AA"+payload+signed[len(plain):], id, ErrForged)
	for n := range payload {
		f("cut", nil, version+"."+payload[:n], id, ErrMalformed)
	}
	for what, change := range map[string]func(*Handover){
		"no number":    func(h *Handover) { h.Route.Score = math.NaN() },
		"past numbers": func(h *Handover) { h.Route.Score = math.Inf(1) },
	} {
		h := full(t)
		change(&h)
		f(what, nil, Key(nil).Encode(&h, id), id, ErrMalformed)
	}
	if _, err := Key(nil).Decode(signed, id); err != nil {
		t.Errorf("signed, and no key here: %v, want none: there is nothing to hold it against", err)
	}
}

// Whatever a client sends, reading it ends, and what was read can be handed on.
func FuzzDecode(f *testing.F) {
	h := Handover{Start: time.Unix(1, 0).UTC(), Asked: dialect.Request{Model: "m", HasModel: true, N: -1, MaxTokens: -1}}
	f.Add(Key(nil).Encode(&h, ""))
	f.Add("1.")
	f.Add("1.AAAA.AAAA")
	f.Add("2.AAAA")
	f.Fuzz(func(t *testing.T, value string) {
		h, err := Key(nil).Decode(value, "")
		if err != nil {
			return
		}
		again := Key(nil).Encode(&h, "")
		if len(again) > MaxLen {
			t.Fatalf("%d bytes", len(again))
		}
		got, err := Key(nil).Decode(again, "")
		if diff := cmp.Diff(h, got); err != nil || diff != "" {
			t.Errorf("%v (-read +read again):\n%s", err, diff)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	h := Handover{
		Start: time.Now(), Asked: dialect.Request{Model: "llama", HasModel: true, N: -1, MaxTokens: 128},
		Route: meter.Route{Pool: "default", Endpoint: "10.0.0.1:8000", Policy: "least-load", Reason: "model", Candidates: []string{"10.0.0.1:8000", "10.0.0.2:8000"}},
	}
	b.ReportAllocs()
	for b.Loop() {
		Key(nil).Encode(&h, "req-1")
	}
}

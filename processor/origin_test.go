package processor

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
)

// epoch is the tests' beginning of time.
var epoch = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func TestOrigin(t *testing.T) {
	type arrival struct {
		at   time.Duration // after epoch
		age  time.Duration // of request.time
		want meter.StartSource
	}
	const ms = time.Millisecond
	for name, steps := range map[string][]arrival{
		"a few milliseconds":          {{0, 4 * ms, meter.StartEnvoy}},
		"none":                        {{0, 0, meter.StartEnvoy}},
		"from the future":             {{0, -ms, meter.StartArrival}},
		"the clock may be 100 ms off": {{0, 100 * ms, meter.StartEnvoy}, {time.Second, 5 * time.Second, meter.StartEnvoy}},
		"and no more":                 {{0, 101 * ms, meter.StartArrival}},
		"late, but not the clock's fault": {
			{0, 4 * ms, meter.StartEnvoy}, {time.Second, 2 * time.Second, meter.StartEnvoy},
			{2 * time.Second, 5*time.Second + 1, meter.StartArrival},
		},
		"the smallest counts for a minute": {
			{0, 4 * ms, meter.StartEnvoy}, {59 * time.Second, time.Second, meter.StartEnvoy},
			{60 * time.Second, time.Second, meter.StartArrival},
		},
		"a clock that ran ahead is not believed for a minute": {
			{0, -ms, meter.StartArrival}, {30 * time.Second, 4 * ms, meter.StartArrival},
			{60 * time.Second, 4 * ms, meter.StartEnvoy},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigins()
			for i, s := range steps {
				at := epoch.Add(s.at)
				begun, source := o.origin("envoy", at, at.Add(-s.age))
				want := at
				if s.want == meter.StartEnvoy {
					want = at.Add(-s.age)
				}
				if source != s.want || !begun.Equal(want) {
					t.Errorf("step %d: got %v by %s, want %v by %s", i, begun, source, want, s.want)
				}
			}
		})
	}
}

func TestOriginWithoutRequestTime(t *testing.T) {
	o := newOrigins()
	for _, s := range []string{"", "yesterday", "1764497422.081"} {
		if begun, source := o.origin("envoy", epoch, requestTime(s)); !begun.Equal(epoch) || source != meter.StartArrival {
			t.Errorf("%q: got %v by %s", s, begun, source)
		}
	}
	if len(o.peers) != 0 {
		t.Error("an unreadable time counts")
	}
}

func TestOriginAsEnvoyWritesIt(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 10, 22, 85_000_000, time.UTC)
	begun, source := newOrigins().origin("envoy", at, requestTime("2026-11-30T10:10:22.081548+00:00"))
	if source != meter.StartEnvoy || at.Sub(begun) != 3452*time.Microsecond {
		t.Errorf("got %v by %s", begun, source)
	}
}

func TestPeersAreToldApartAndBounded(t *testing.T) {
	o := newOrigins()
	ask := func(peer string, at time.Time, age time.Duration) meter.StartSource {
		_, source := o.origin(peer, at, at.Add(-age))
		return source
	}
	if ask("ahead", epoch, -time.Second) != meter.StartArrival || ask("good", epoch, time.Millisecond) != meter.StartEnvoy {
		t.Error("one peer's clock counts for another")
	}
	for i := range 3 * maxPeers {
		ask(fmt.Sprint(i), epoch.Add(time.Duration(i+1)*time.Second), 0)
	}
	if len(o.peers) != maxPeers {
		t.Errorf("got %d peers, want %d", len(o.peers), maxPeers)
	}
	if o.peers["good"] != nil || o.peers[fmt.Sprint(3*maxPeers-1)] == nil {
		t.Error("not the oldest was dropped")
	}
}

func TestPeerKey(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"":            nil,
		"10.0.0.7":    &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 12345},
		"unix:@envoy": &net.UnixAddr{Net: "unix", Name: "@envoy"},
	} {
		if got := peerKey(addr); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

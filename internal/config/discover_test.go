package config

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse_Discover(t *testing.T) {
	found := func(name string, d Discover) Pool {
		p := Pool{Name: name, Discover: &d}
		p.setDefaults()
		return p
	}
	byDefault := DiscoverDNS{
		Name: "vllm.default.svc.cluster.local", Record: "A", Port: 8000,
		MinInterval: time.Second, MaxInterval: 5 * time.Minute, KeepAbsent: 30 * time.Second, KeepFailed: time.Hour,
	}
	weighted := poolOf("weighted", "10.0.0.1:8000", "10.0.0.2:8000")
	weighted.Endpoints[1].Weight = 3
	want := Default()
	want.Kubernetes = Kubernetes{Kubeconfig: "/etc/inferspan/kubeconfig"}
	want.Pools = []Pool{
		weighted,
		found("file", Discover{File: &DiscoverFile{Path: "/etc/inferspan/endpoints.yaml"}}),
		found("dns", Discover{DNS: &byDefault}),
		found("srv", Discover{DNS: &DiscoverDNS{
			Name: "_http._tcp.vllm.", Record: "SRV", Server: "127.0.0.1:8600",
			MinInterval: 5 * time.Second, MaxInterval: time.Minute, KeepAbsent: 0, KeepFailed: time.Minute,
		}}),
		found("pool", Discover{InferencePool: &DiscoverInferencePool{Name: "llama", Namespace: "ai"}}),
		found("service", Discover{Service: &DiscoverService{Name: "vllm", Port: "http"}}),
	}
	got, err := Load("testdata/valid-discover.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseEndpoints(t *testing.T) {
	f := func(text string, want []Endpoint, faults ...string) {
		t.Helper()
		got, err := ParseEndpoints("f", []byte(text))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		var lines []string
		if e, ok := errors.AsType[*Error](err); ok {
			lines = e.Lines()
		} else if err != nil {
			lines = []string{err.Error()}
		}
		if diff := cmp.Diff(faults, lines); diff != "" {
			t.Errorf("%q: faults (-want +got):\n%s", text, diff)
		}
	}
	f("[]", []Endpoint{})
	f("- 10.0.0.1:8000\n- {address: '[fd00:0::7]:80', weight: 2}\n", []Endpoint{{"10.0.0.1:8000", 1}, {"[fd00::7]:80", 2}})
	f(`["10.0.0.1:8000", {"address": "10.0.0.2:8000"}]`, []Endpoint{{"10.0.0.1:8000", 1}, {"10.0.0.2:8000", 1}})
	f("", nil, "f: is empty; allowed: a list, [] for an empty one")
	f("# nothing yet\n", nil, "f: is empty; allowed: a list, [] for an empty one")
	f(`["10.0.0.1:8000", "10.0.`, nil, `f:1: not YAML: found unexpected end of stream; allowed: one YAML document`)
	f("endpoints: []", nil, "f:1: is a mapping; allowed: a list, [] for an empty one")
	f("- 10.0.0.1:8000\n- vllm:8000\n- {weight: 0}\n- 10.0.0.1:8000\n- [1]\n", nil,
		`f:2: [1]: is "vllm:8000", which names a host, and host names are not looked up; allowed: ip:port, such as 10.0.0.7:8000 or [fd00::7]:8000`,
		`f:3: [2].weight: is 0; allowed: a whole number from 1 to 1000000`,
		`f:3: [2].address: is missing; allowed: ip:port, such as 10.0.0.7:8000 or [fd00::7]:8000`,
		`f:4: [3]: "10.0.0.1:8000" is [0] too; allowed: each endpoint of a pool once`,
		`f:5: [4]: is a list; allowed: a mapping with the keys address, weight`)
}

// FuzzParseEndpoints holds that a file, whatever it holds, is read or refused,
// and that what is read names each server once.
func FuzzParseEndpoints(f *testing.F) {
	f.Add([]byte("- 10.0.0.1:8000\n- {address: '[fd00:0::7]:80', weight: 2}\n"))
	f.Add([]byte(`["10.0.0.1:8000", {"address": "10.0.0.2:8000"}]`))
	f.Add([]byte("- &a 10.0.0.1:8000\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseEndpoints("f", data)
		if err != nil {
			if list != nil || err.Error() == "" {
				t.Fatalf("endpoints %v with the error %q", list, err)
			}
			return
		}
		seen := map[Address]bool{}
		for _, e := range list {
			var a Address
			if err := a.parse(string(e.Address)); err != nil || a != e.Address || seen[a] || e.Weight < 1 {
				t.Fatalf("the endpoint %+v", e)
			}
			seen[a] = true
		}
	})
}

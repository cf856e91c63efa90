package discover

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/inferspan/inferspan/internal/testkit/zone"
)

// looked returns what lookup of d says, in one line.
func looked(t *testing.T, d DNS) string {
	t.Helper()
	endpoints, ttl, err := lookup(t.Context(), d)
	if none, ok := errors.AsType[*absentError](err); ok {
		return fmt.Sprintf("absent for %s: %v", none.ttl, err)
	}
	if err != nil {
		return err.Error()
	}
	words := []string{ttl.String()}
	for _, e := range endpoints {
		words = append(words, fmt.Sprintf("%s*%d", e.Address, e.Weight))
	}
	return strings.Join(words, " ")
}

func TestLookup_Addresses(t *testing.T) {
	z := zone.Serve(t)
	f := func(record, want string, reply dns.HandlerFunc) {
		t.Helper()
		z.Set("vllm. "+record, reply)
		d := atZone(z)
		d.Record = record
		if got := looked(t, d); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	f("A", "10s 10.0.0.1:8000*0", zone.Records("vllm. 60 A 10.0.0.1", "vllm. 10 A 10.0.0.1"))
	f("A", "5s 10.0.0.1:8000*0", zone.Records("VLLM. 5 CNAME a.", "a. 60 CNAME b.", "b. 60 A 10.0.0.1", "other. 1 A 10.9.9.9"))
	f("AAAA", "7s [fd00::7]:8000*0", zone.Records("vllm. 7 AAAA fd00::7"))
	f("A", "absent for 7s: look up the A records of vllm.: there is no address that a server can have", zone.Records("vllm. 7 A 0.0.0.0", "vllm. 7 A 224.0.0.1"))
	f("A", "absent for 0s: look up the A records of vllm.: the name has no such records", zone.Records())
	f("A", "absent for 4s: look up the A records of vllm.: there is no such name", zone.Code(dns.RcodeNameError, ". 4 SOA a. b. 1 2 3 4 60"))
	f("A", "look up the A records of vllm.: ask "+z.Addr+": it answers NOTIMP", zone.Code(dns.RcodeNotImplemented))
	f("A", "look up the A records of vllm.: ask "+z.Addr+": it does not know and asks no other server",
		zone.Reply(func(m *dns.Msg) { m.RecursionAvailable = false }))
	f("A", "look up the A records of vllm.: ask "+z.Addr+": it answers another question",
		zone.Reply(func(m *dns.Msg) { m.Question[0].Name = "else." }))
	f("A", "look up the A records of vllm.: more than 8 aliases lead from one to the next", zone.Records("vllm. 5 CNAME vllm2.", "vllm2. 5 CNAME vllm."))

	// An alias whose end the server leaves to be asked for.
	z.Set("end. A", zone.Records("end. 3 A 10.0.0.5"))
	f("A", "3s 10.0.0.5:8000*0", zone.Records("vllm. 9 CNAME end."))
	f("A", "absent for 0s: look up the A records of vllm.: there is no such name", zone.Records("vllm. 9 CNAME nowhere."))
}

// What does not fit into a packet is asked for over TCP.
func TestLookup_Large(t *testing.T) {
	z := zone.Serve(t)
	var all []string
	for i := range 250 {
		all = append(all, fmt.Sprintf("vllm. 60 A 10.0.1.%d", i+1))
	}
	z.Set("vllm. A", zone.Records(all...))
	endpoints, _, err := lookup(t.Context(), atZone(z))
	if err != nil || len(endpoints) != len(all) {
		t.Errorf("got %d endpoints, %v, want %d", len(endpoints), err, len(all))
	}
	if diff := cmp.Diff([]string{"udp vllm. A", "tcp vllm. A"}, z.Questions()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestLookup_Services(t *testing.T) {
	z := zone.Serve(t)
	d := atZone(z)
	d.Name, d.Record, d.Port = "_http._tcp.vllm.", RecordSRV, 0
	f := func(want string, reply dns.HandlerFunc, asked ...string) {
		t.Helper()
		z.Set("_http._tcp.vllm. SRV", reply)
		if got := looked(t, d); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := z.Questions()[1:]; !slices.Equal(got, asked) {
			t.Errorf("asked beside: %q, want %q", got, asked)
		}
	}
	const srv = "_http._tcp.vllm. 60 SRV "
	f("9s 10.0.0.1:8001*3 10.0.0.2:8002*1",
		zone.WithExtra([]string{"a.vllm. 9 A 10.0.0.1", "a.vllm. 5 AAAA fd00::1", "b.vllm. 30 A 10.0.0.2"},
			srv+"0 3 8001 a.vllm.", srv+"0 0 8002 b.vllm.", srv+"1 9 8003 spare.vllm."))
	z.Set("a.vllm. A", zone.Records("a.vllm. 8 A 10.0.0.1", "a.vllm. 8 A 10.0.0.9"))
	z.Set("six.vllm. A", zone.Code(dns.RcodeSuccess))
	z.Set("six.vllm. AAAA", zone.Records("six.vllm. 8 AAAA fd00::6"))
	f("8s 10.0.0.1:80*2 10.0.0.9:80*2 [fd00::6]:80*4",
		zone.Records(srv+"5 2 80 a.vllm.", srv+"5 4 80 six.vllm.", srv+"5 4 80 gone.vllm."),
		"udp a.vllm. A", "udp six.vllm. A", "udp six.vllm. AAAA", "udp gone.vllm. A", "udp gone.vllm. AAAA")
	f("absent for 1m0s: look up the SRV records of _http._tcp.vllm.: there is no address that a server can have", zone.Records(srv+"0 0 0 ."))
	f("absent for 0s: look up the SRV records of _http._tcp.vllm.: there is no such name", nil)
	// One that can't be told makes it unknown which there are.
	z.Set("a.vllm. A", zone.Code(dns.RcodeServerFailure))
	f("look up the SRV records of _http._tcp.vllm.: the server a.vllm.: ask "+z.Addr+": it answers SERVFAIL",
		zone.Records(srv+"0 2 80 a.vllm."), "udp a.vllm. A", "udp a.vllm. A")
}

// The search list of resolv.conf completes a name; a completion that can't be
// told is no name that is not there.
func TestResolver_Search(t *testing.T) {
	z := zone.Serve(t)
	r, err := newResolver(z.Addr, "")
	if err != nil {
		t.Fatal(err)
	}
	r.config.Search, r.config.Ndots = []string{"ns.svc.cluster.local", "svc.cluster.local"}, 5
	z.Set("vllm.svc.cluster.local. A", zone.Records("vllm.svc.cluster.local. 5 A 10.0.0.1"))
	a, err := r.search(t.Context(), "vllm", dns.TypeA)
	if err != nil || len(a.records) != 1 || a.ttl != 5*time.Second {
		t.Errorf("got %+v, %v, want one record", a, err)
	}
	if diff := cmp.Diff([]string{"udp vllm.ns.svc.cluster.local. A", "udp vllm.svc.cluster.local. A"}, z.Questions()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	z.Set("vllm.svc.cluster.local. A", zone.Code(dns.RcodeServerFailure))
	if _, err := r.search(t.Context(), "vllm", dns.TypeA); err == nil || !strings.Contains(err.Error(), "SERVFAIL") {
		t.Errorf("got %v, want the failure", err)
	}
}

// The next server is asked where one can't tell, and is not where one can.
func TestResolver_Servers(t *testing.T) {
	bad, good := zone.Serve(t), zone.Serve(t)
	r, err := newResolver(bad.Addr, "")
	if err != nil {
		t.Fatal(err)
	}
	r.servers = append(r.servers, good.Addr)
	bad.Set("vllm. A", zone.Code(dns.RcodeServerFailure))
	good.Set("vllm. A", zone.Records("vllm. 5 A 10.0.0.1"))
	if a, err := r.ask(t.Context(), "vllm.", dns.TypeA); err != nil || len(a.records) != 1 {
		t.Errorf("got %+v, %v, want the second server's record", a, err)
	}
	bad.Set("vllm. A", zone.Code(dns.RcodeNameError))
	good.Questions()
	if _, err := r.ask(t.Context(), "vllm.", dns.TypeA); err == nil || err.Error() != "there is no such name" {
		t.Errorf("got %v, want that there is no such name", err)
	}
	if asked := good.Questions(); len(asked) != 0 {
		t.Errorf("the second server was asked %q", asked)
	}
}

func TestNewResolver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	put(t, file, "search svc.cluster.local\nnameserver 10.0.0.10\nnameserver fd00::a\noptions ndots:5 timeout:1 attempts:3\n")
	r, err := newResolver("", file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.0.0.10:53", "[fd00::a]:53"}, r.servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"vllm.svc.cluster.local.", "vllm."}, r.config.NameList("vllm")); diff != "" || r.config.Timeout != 1 || r.config.Attempts != 3 {
		t.Errorf("%+v; names (-want +got):\n%s", r.config, diff)
	}
	put(t, file, "search svc.cluster.local\n")
	for file, want := range map[string]string{
		file:       "read the DNS servers: " + file + " names none; name one as `server`",
		"/no/such": "read the DNS servers: open /no/such: no such file or directory",
	} {
		if _, err := newResolver("", file); err == nil || err.Error() != want {
			t.Errorf("newResolver(%s): %v, want %s", file, err, want)
		}
	}
}

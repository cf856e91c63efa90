package discover

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/inferspan/inferspan/internal/testkit/zone"
)

// FuzzReply holds what must hold of any reply, whoever sent it: it is read to
// an end, and gives addresses that a server can have.
func FuzzReply(f *testing.F) {
	for _, texts := range [][]string{
		{"vllm. 5 CNAME a.", "a. 5 A 10.0.0.1", "a. 5 AAAA fd00::1"},
		{"vllm. 5 CNAME a.", "a. 5 CNAME vllm."},
		{"vllm. 5 SRV 1 2 80 a.", "vllm. 5 SRV 0 2 0 .", "vllm. 5 A 0.0.0.0"},
	} {
		m := new(dns.Msg).SetQuestion("vllm.", dns.TypeA)
		m.Answer = zone.Parse(texts...)
		data, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(dns.Msg)
		if m.Unpack(data) != nil {
			return
		}
		_ = inconclusive(new(dns.Msg).SetQuestion("vllm.", dns.TypeA), m)
		if end, ttl, err := lastAlias(m.Answer, "vllm."); err == nil {
			records, recordsTTL := ofName(m.Answer, end, dns.TypeA)
			if ttl < 0 || recordsTTL < 0 {
				t.Fatalf("TTLs %s and %s", ttl, recordsTTL)
			}
			for _, a := range usable(append(records, m.Answer...)) {
				if !a.IsValid() || a.IsUnspecified() || a.Is4In6() {
					t.Fatalf("the address %s", a)
				}
			}
		}
		for _, srv := range lowest(m.Answer) {
			if srv.Port == 0 || srv.Target == "." {
				t.Fatalf("the record %s", srv)
			}
		}
		if negativeTTL(m) < 0 {
			t.Fatal("a negative TTL")
		}
	})
}

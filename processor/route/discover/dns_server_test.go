package discover

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// zone is a DNS server, whose records a test changes as it goes.
type zone struct {
	addr string

	mu    sync.Mutex
	reply map[string]dns.HandlerFunc // by name and type, as "vllm. A"
	asked []string
}

// serveZone serves on UDP and TCP until the test ends.
func serveZone(t *testing.T) *zone {
	t.Helper()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{addr: tcp.Addr().String(), reply: map[string]dns.HandlerFunc{}}
	udp, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", z.addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{Listener: tcp}, {PacketConn: udp}} {
		started, ended := make(chan struct{}), make(chan error)
		s.Handler, s.NotifyStartedFunc = z, func() { close(started) }
		go func() { ended <- s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	return z
}

// ServeDNS implements dns.Handler. What has no reply is no name.
func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	key := strings.ToLower(q.Question[0].Name) + " " + dns.TypeToString[q.Question[0].Qtype]
	z.mu.Lock()
	z.asked = append(z.asked, w.LocalAddr().Network()+" "+key)
	reply := z.reply[key]
	z.mu.Unlock()
	if reply == nil {
		reply = code(dns.RcodeNameError)
	}
	reply(w, q)
}

// set has the server answer key by reply from now on.
func (z *zone) set(key string, reply dns.HandlerFunc) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.reply[key] = reply
}

// questions returns what was asked since the last time.
func (z *zone) questions() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	asked := z.asked
	z.asked = nil
	return asked
}

// rr are records in the form of zone files.
func rr(texts ...string) []dns.RR {
	out := make([]dns.RR, 0, len(texts))
	for _, text := range texts {
		r, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

func respond(w dns.ResponseWriter, q *dns.Msg, edit func(m *dns.Msg)) {
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	edit(m)
	if w.LocalAddr().Network() == "udp" {
		m.Truncate(1232)
	}
	_ = w.WriteMsg(m) // who has gone needs no answer
}

// records answers with these.
func records(texts ...string) dns.HandlerFunc { return withExtra(nil, texts...) }

// withExtra answers with texts, and tells extra beside.
func withExtra(extra []string, texts ...string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		respond(w, q, func(m *dns.Msg) { m.Answer, m.Extra = rr(texts...), rr(extra...) })
	}
}

// code answers with a response code and these records of authority.
func code(rcode int, authority ...string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		respond(w, q, func(m *dns.Msg) { m.Rcode, m.Ns = rcode, rr(authority...) })
	}
}

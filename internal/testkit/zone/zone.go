// Package zone is a DNS server for tests, which answers as they say.
package zone

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// Server is a DNS server, whose records a test changes as it goes. It is safe for
// concurrent use.
type Server struct {
	// Addr is its ip:port, by UDP and TCP.
	Addr string

	mu    sync.Mutex
	reply map[string]dns.HandlerFunc // by name and type, as "vllm. A"
	asked []string
}

// Serve serves until the test ends. There are no names at first.
func Serve(t testing.TB) *Server {
	t.Helper()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &Server{Addr: tcp.Addr().String(), reply: map[string]dns.HandlerFunc{}}
	udp, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", z.Addr)
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
func (z *Server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	key := strings.ToLower(q.Question[0].Name) + " " + dns.TypeToString[q.Question[0].Qtype]
	z.mu.Lock()
	z.asked = append(z.asked, w.LocalAddr().Network()+" "+key)
	reply := z.reply[key]
	z.mu.Unlock()
	if reply == nil {
		reply = Code(dns.RcodeNameError)
	}
	reply(w, q)
}

// Set has the server answer key, a name with its dot and a type as in "vllm. A", by
// reply from now on.
func (z *Server) Set(key string, reply dns.HandlerFunc) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.reply[key] = reply
}

// Questions returns what was asked since the last time, as in "udp vllm. A".
func (z *Server) Questions() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	asked := z.asked
	z.asked = nil
	return asked
}

// Parse reads records in the form of zone files.
func Parse(texts ...string) []dns.RR {
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

// Reply answers with what edit makes of an empty answer.
func Reply(edit func(m *dns.Msg)) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.RecursionAvailable = true
		edit(m)
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(1232)
		}
		_ = w.WriteMsg(m) // who has gone needs no answer
	}
}

// Records answers with records in the form of zone files.
func Records(texts ...string) dns.HandlerFunc { return WithExtra(nil, texts...) }

// WithExtra answers with texts, and tells extra beside.
func WithExtra(extra []string, texts ...string) dns.HandlerFunc {
	return Reply(func(m *dns.Msg) { m.Answer, m.Extra = Parse(texts...), Parse(extra...) })
}

// Code answers with a response code and these records of authority.
func Code(rcode int, authority ...string) dns.HandlerFunc {
	return Reply(func(m *dns.Msg) { m.Rcode, m.Ns = rcode, Parse(authority...) })
}

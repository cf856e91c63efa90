package discover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// resolvConf is where the host says which servers to ask.
const resolvConf = "/etc/resolv.conf"

// maxChain is how many aliases of a name are followed.
const maxChain = 8

// longest is a TTL that any other is shorter than.
const longest = time.Duration(math.MaxInt64)

// resolver asks DNS servers. The standard library's resolver does not tell how
// long an answer holds, nor a name that is not there from a server that is lost.
type resolver struct {
	config  *dns.ClientConfig
	servers []string // ip:port
}

// answer is what a name has.
type answer struct {
	records []dns.RR // of the type that was asked for
	extra   []dns.RR // what the server told beside
	ttl     time.Duration
}

// newResolver returns a resolver that asks server, or where that is empty, those
// that file names now.
func newResolver(server, file string) (*resolver, error) {
	if server != "" {
		c, err := dns.ClientConfigFromReader(strings.NewReader(""))
		if err != nil {
			return nil, fmt.Errorf("set up a resolver: %w", err)
		}
		return &resolver{config: c, servers: []string{server}}, nil
	}
	c, err := dns.ClientConfigFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the DNS servers: %w", err)
	}
	if len(c.Servers) == 0 {
		return nil, fmt.Errorf("read the DNS servers: %s names none; name one as `server`", file)
	}
	r := &resolver{config: c}
	for _, s := range c.Servers {
		r.servers = append(r.servers, net.JoinHostPort(s, c.Port))
	}
	return r, nil
}

// search asks for name as the search list completes it: the first completion
// that has records counts.
func (r *resolver) search(ctx context.Context, name string, typ uint16) (answer, error) {
	var absent, failure error
	for _, full := range r.config.NameList(name) {
		a, err := r.ask(ctx, full, typ)
		_, none := errors.AsType[*absentError](err)
		switch {
		case err == nil:
			return a, nil
		case none && absent == nil:
			absent = err
		case !none && failure == nil:
			failure = err
		}
	}
	if failure != nil {
		return answer{}, failure
	}
	return answer{}, absent
}

// ask asks for the records of a complete name, through its aliases.
func (r *resolver) ask(ctx context.Context, name string, typ uint16) (answer, error) {
	ttl := longest
	for range maxChain {
		reply, err := r.question(ctx, name, typ)
		if err != nil {
			return answer{}, err
		}
		end, aliasTTL, err := lastAlias(reply.Answer, name)
		if err != nil {
			return answer{}, err
		}
		ttl = min(ttl, aliasTTL)
		records, recordsTTL := ofName(reply.Answer, end, typ)
		switch {
		case len(records) > 0:
			return answer{records: records, extra: reply.Extra, ttl: min(ttl, recordsTTL)}, nil
		case reply.Rcode == dns.RcodeNameError:
			return answer{}, &absentError{problem: "there is no such name", ttl: min(ttl, negativeTTL(reply))}
		case strings.EqualFold(end, name):
			return answer{}, &absentError{problem: "the name has no such records", ttl: min(ttl, negativeTTL(reply))}
		}
		name = end
	}
	return answer{}, errChain
}

// errChain is that a name's aliases lead to no end.
var errChain = fmt.Errorf("more than %d aliases lead from one to the next", maxChain)

// question asks the servers in turn, until one tells what there is or that
// there is nothing.
func (r *resolver) question(ctx context.Context, name string, typ uint16) (*dns.Msg, error) {
	q := new(dns.Msg)
	q.SetQuestion(name, typ)
	q.SetEdns0(1232, false) // what fits into any network's packets
	var last error
	for range r.config.Attempts {
		for _, server := range r.servers {
			reply, err := r.exchange(ctx, "udp", server, q)
			if err == nil && reply.Truncated {
				reply, err = r.exchange(ctx, "tcp", server, q)
			}
			if err == nil {
				err = inconclusive(q, reply)
			}
			if err == nil {
				return reply, nil
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("ask %s: %w", server, context.Cause(ctx))
			}
			last = fmt.Errorf("ask %s: %w", server, err)
		}
	}
	return nil, last
}

func (r *resolver) exchange(ctx context.Context, network, server string, q *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: network, Timeout: time.Duration(r.config.Timeout) * time.Second}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, err
	}
	// The library heeds the context's deadline, but not its end.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close()
		}
	}()
	q.Id = dns.Id()
	reply, _, err := client.ExchangeWithConnContext(ctx, q, conn)
	return reply, err
}

// inconclusive returns why reply does not tell what there is; nil: it does.
func inconclusive(q, reply *dns.Msg) error {
	switch {
	case len(reply.Question) != 1 || reply.Question[0].Qtype != q.Question[0].Qtype ||
		!strings.EqualFold(reply.Question[0].Name, q.Question[0].Name):
		return errors.New("it answers another question")
	case reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError:
		return errors.New("it answers " + dns.RcodeToString[reply.Rcode])
	case reply.Rcode == dns.RcodeSuccess && len(reply.Answer) == 0 && !reply.Authoritative && !reply.RecursionAvailable:
		return errors.New("it does not know and asks no other server")
	}
	return nil
}

// lastAlias returns what name is an alias of in the end, which is name where it
// is none, and how long that holds.
func lastAlias(records []dns.RR, name string) (string, time.Duration, error) {
	ttl := longest
	for range maxChain {
		aliases, aliasTTL := ofName(records, name, dns.TypeCNAME)
		if len(aliases) == 0 {
			return name, ttl, nil
		}
		if alias, ok := aliases[0].(*dns.CNAME); ok {
			name, ttl = alias.Target, min(ttl, aliasTTL)
		}
	}
	return "", 0, errChain
}

// negativeTTL is how long it holds that there is nothing; 0 where it is not said.
func negativeTTL(reply *dns.Msg) time.Duration {
	for _, rr := range reply.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			return seconds(min(soa.Hdr.Ttl, soa.Minttl))
		}
	}
	return 0
}

func seconds(ttl uint32) time.Duration { return time.Duration(ttl) * time.Second }

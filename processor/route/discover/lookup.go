package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/inferspan/inferspan/processor/route"
)

// absentError is the answer that a name has no records of a type.
type absentError struct {
	problem string
	ttl     time.Duration // how long that holds
}

func (e *absentError) Error() string { return e.problem }

// lookup returns the endpoints that d's name has, and how long they hold. An
// *absentError says that there are none, any other error that it can't be told.
func lookup(ctx context.Context, d DNS) ([]route.Endpoint, time.Duration, error) {
	r, err := newResolver(d.Server, resolvConf)
	if err != nil {
		return nil, 0, err
	}
	var out []route.Endpoint
	var ttl time.Duration
	if d.Record == RecordSRV {
		out, ttl, err = r.services(ctx, d.Name)
	} else {
		var addrs []netip.Addr
		addrs, ttl, err = r.addresses(ctx, d.Name, dns.StringToType[d.Record])
		for _, a := range addrs {
			out = append(out, route.Endpoint{Address: net.JoinHostPort(a.String(), strconv.Itoa(d.Port))})
		}
	}
	if err == nil && len(out) == 0 {
		err = &absentError{problem: "there is no address that a server can have", ttl: ttl}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look up the %s records of %s: %w", d.Record, d.Name, err)
	}
	return out, ttl, nil
}

// addresses returns the addresses of name that a server can have.
func (r *resolver) addresses(ctx context.Context, name string, typ uint16) ([]netip.Addr, time.Duration, error) {
	a, err := r.search(ctx, name, typ)
	if err != nil {
		return nil, 0, err
	}
	return usable(a.records), a.ttl, nil
}

// usable returns the addresses in records that a server can have, each once.
func usable(records []dns.RR) []netip.Addr {
	var out []netip.Addr
	for _, rr := range records {
		var raw []byte
		switch rr := rr.(type) {
		case *dns.A:
			raw = rr.A.To4()
		case *dns.AAAA:
			raw = rr.AAAA.To16()
		}
		// Filters answer with unspecified addresses for names that they block.
		if a, ok := netip.AddrFromSlice(raw); ok && !a.IsUnspecified() && !a.IsMulticast() {
			out = append(out, a.Unmap())
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// services returns what the SRV records of name with the lowest priority say.
func (r *resolver) services(ctx context.Context, name string) ([]route.Endpoint, time.Duration, error) {
	a, err := r.search(ctx, name, dns.TypeSRV)
	if err != nil {
		return nil, 0, err
	}
	var out []route.Endpoint
	ttl := a.ttl
	for _, srv := range lowest(a.records) {
		addrs, targetTTL, err := r.target(ctx, srv.Target, a.extra)
		if _, none := errors.AsType[*absentError](err); err != nil && !none {
			return nil, 0, fmt.Errorf("the server %s: %w", srv.Target, err)
		} else if none {
			continue // one that is going or coming; the others are there
		}
		ttl = min(ttl, targetTTL)
		for _, addr := range addrs {
			out = append(out, route.Endpoint{
				Address: netip.AddrPortFrom(addr, srv.Port).String(),
				Weight:  max(1, int(srv.Weight)),
			})
		}
	}
	return out, ttl, nil
}

// lowest returns the records of the lowest priority that name a server.
func lowest(records []dns.RR) []*dns.SRV {
	var all []*dns.SRV
	for _, rr := range records {
		if srv, ok := rr.(*dns.SRV); ok && srv.Port != 0 && srv.Target != "." {
			all = append(all, srv)
		}
	}
	slices.SortStableFunc(all, func(a, b *dns.SRV) int { return cmp.Compare(a.Priority, b.Priority) })
	return slices.DeleteFunc(all, func(s *dns.SRV) bool { return s.Priority != all[0].Priority })
}

// target returns the addresses of a server that an SRV record names: those that
// came with the record, else those that it is asked for.
func (r *resolver) target(ctx context.Context, name string, extra []dns.RR) ([]netip.Addr, time.Duration, error) {
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
		own, ttl := ofName(extra, name, typ)
		if addrs := usable(own); len(addrs) > 0 {
			return addrs, ttl, nil
		}
	}
	a, err := r.ask(ctx, name, dns.TypeA)
	if _, none := errors.AsType[*absentError](err); none {
		a, err = r.ask(ctx, name, dns.TypeAAAA)
	}
	if err != nil {
		return nil, 0, err
	}
	return usable(a.records), a.ttl, nil
}

// ofName returns the records of a name and type among all, with their least TTL.
func ofName(all []dns.RR, name string, typ uint16) ([]dns.RR, time.Duration) {
	var out []dns.RR
	ttl := longest
	for _, rr := range all {
		if h := rr.Header(); h.Rrtype == typ && strings.EqualFold(h.Name, name) {
			out = append(out, rr)
			ttl = min(ttl, seconds(h.Ttl))
		}
	}
	return out, ttl
}

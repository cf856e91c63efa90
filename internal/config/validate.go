package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// maxName is the length of the longest name of a pool, in bytes.
const maxName = 63

// validate finds the faults that concern more than one value.
func (c *Config) validate() []Fault {
	var v validator
	v.addresses(c.Listen, c.Admin)
	v.tls("tls", c.TLS)
	v.tls("admin_tls", c.AdminTLS)
	v.pools(c.Pools)
	v.models(c.Models)
	v.headerAttributes(c.Attributes.FromHeaders, c.Trusted.Header)
	v.slos(c.SLO)
	v.trusted(c.Trusted)
	v.handover(c.Handover)
	v.hold(c.Request)
	v.sessionHeaders(c.Request.SessionHeaders)
	return v.faults
}

type validator struct {
	faults []Fault
	// poolNames are the known pools, in the order of the file.
	poolNames []string
}

func (v *validator) failf(path, format string, args ...any) {
	v.faults = append(v.faults, Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// addresses finds two servers on one address, which the kernel would refuse only
// once the program runs.
func (v *validator) addresses(l Listen, admin HostPort) {
	if l.Network != "tcp" {
		return
	}
	// What is no address was reported when it was parsed, and has no port here.
	host, port, _ := net.SplitHostPort(l.Address)
	adminHost, adminPort, _ := net.SplitHostPort(string(admin))
	if port != adminPort || strings.Trim(port, "0") == "" {
		return
	}
	if host == adminHost || everyHost(host) || everyHost(adminHost) {
		v.failf("admin", "%q overlaps with listen, %q; allowed: an address of its own", string(admin), l.String())
	}
}

func everyHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func (v *validator) tls(path string, t *TLS) {
	if t == nil {
		return
	}
	for _, f := range []struct{ key, value string }{{"cert", t.Cert}, {"key", t.Key}} {
		if f.value == "" {
			v.failf(path+"."+f.key, "is missing; allowed: the path of a PEM file (cert and key belong together)")
		}
	}
	if t.Cert == "" || t.Key == "" {
		return
	}
	if _, err := t.certificate(); err != nil {
		v.failf(path+".cert", "%s; allowed: a PEM certificate, with its PEM private key in %s.key", err, path)
	}
	if t.ClientCA == "" {
		return
	}
	if _, err := t.authorities(); err != nil {
		v.failf(path+".client_ca", "%s; allowed: a PEM file with at least one certificate", err)
	}
}

func (v *validator) pools(pools []Pool) {
	first := map[string]int{}
	for i, p := range pools {
		path := "pools[" + strconv.Itoa(i) + "]"
		if !validPool(p.Name) {
			v.failf(path+".name", "%s; allowed: 1 to %d letters, digits, '.', '_' or '-'", nameProblem(p.Name), maxName)
		} else if j, twice := first[p.Name]; twice {
			v.failf(path+".name", "%q is the name of pools[%d] too; allowed: a name of its own", p.Name, j)
		} else {
			first[p.Name] = i
			v.poolNames = append(v.poolNames, p.Name)
		}
		v.endpoints(path, "endpoints", p.Endpoints)
		v.shed(path+".shed", p.Shed)
		v.discover(path, p)
		v.eject(path+".eject", &p.Eject)
	}
}

func (v *validator) allowedPools() string {
	if len(v.poolNames) == 0 {
		return "the name of a pool, and pools has none"
	}
	return strings.Join(v.poolNames, ", ")
}

func nameProblem(name string) string {
	if name == "" {
		return "is missing"
	}
	return "is " + strconv.Quote(name)
}

func validPool(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

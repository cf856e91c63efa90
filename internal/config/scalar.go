package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Size is a number of bytes.
type Size int64

const (
	kib Size = 1 << 10
	mib Size = 1 << 20
	gib Size = 1 << 30
)

var errSize = errors.New("which is no size; allowed: a whole number with a unit, such as 512KiB, 64MiB or 1GiB")

func (s *Size) parse(text string) error {
	for _, u := range []struct {
		suffix string
		bytes  Size
	}{{"KiB", kib}, {"MiB", mib}, {"GiB", gib}} {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return errSize
		}
		*s = Size(n) * u.bytes
		return nil
	}
	return errSize
}

// String returns s in the largest unit that divides it.
func (s Size) String() string {
	switch {
	case s%gib == 0 && s != 0:
		return fmt.Sprintf("%dGiB", s/gib)
	case s%mib == 0 && s != 0:
		return fmt.Sprintf("%dMiB", s/mib)
	}
	return fmt.Sprintf("%dKiB", s/kib)
}

func parseDuration(text string, v reflect.Value) error {
	t, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("which is no duration; allowed: a number with a unit, such as 500ms, 30s or 5m")
	}
	v.SetInt(int64(t))
	return nil
}

// Listen is an address to serve on.
type Listen struct {
	Network string // tcp or unix
	Address string // host:port, or the path of the socket
}

// maxSocketPath is what the kernel takes as the path of a socket.
const maxSocketPath = 107

func (l *Listen) parse(text string) error {
	path, unix := strings.CutPrefix(text, "unix:")
	switch {
	case unix && !filepath.IsAbs(path):
		return errors.New("whose path is not absolute; allowed: unix:/path, such as unix:/run/inferspan.sock")
	case unix && len(path) > maxSocketPath:
		return fmt.Errorf("whose path has %d bytes; allowed: %d at most", len(path), maxSocketPath)
	case unix:
		*l = Listen{Network: "unix", Address: filepath.Clean(path)}
		return nil
	}
	if err := checkHostPort(text); err != nil {
		return fmt.Errorf("%w, or unix:/path", err)
	}
	*l = Listen{Network: "tcp", Address: text}
	return nil
}

// String returns l as the file has it.
func (l Listen) String() string {
	if l.Network == "unix" {
		return "unix:" + l.Address
	}
	return l.Address
}

// HostPort is a TCP address to serve on.
type HostPort string

func (h *HostPort) parse(text string) error {
	if err := checkHostPort(text); err != nil {
		return err
	}
	*h = HostPort(text)
	return nil
}

func checkHostPort(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("which is no address; allowed: host:port, such as 127.0.0.1:9002, [::1]:9002 or :9002")
	}
	return nil
}

// Address is the ip:port of a server, in canonical spelling.
type Address string

const wantEndpoint = "allowed: ip:port, such as 10.0.0.7:8000 or [fd00::7]:8000"

func (e *Address) parse(text string) error {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		host, port, splitErr := net.SplitHostPort(text)
		_, ipErr := netip.ParseAddr(host)
		_, portErr := strconv.ParseUint(port, 10, 16)
		if splitErr == nil && portErr == nil && ipErr != nil && looksLikeHost(host) {
			return errors.New("which names a host, and host names are not looked up; " + wantEndpoint)
		}
		return errors.New("which is no endpoint; " + wantEndpoint)
	}
	switch {
	case a.Port() == 0:
		return errors.New("which has the port 0; " + wantEndpoint)
	case a.Addr().IsUnspecified():
		return errors.New("which is no server's address; " + wantEndpoint)
	case a.Addr().Zone() != "":
		return errors.New("which has a zone, and Envoy's endpoints have none; " + wantEndpoint)
	}
	*e = Address(a.String())
	return nil
}

// looksLikeHost tells a name from an address with a slip in it.
func looksLikeHost(s string) bool {
	return !strings.Contains(s, ":") && strings.ContainsFunc(s, unicode.IsLetter)
}

// bound parses a bound from a field's tag, in the form of the type t.
func bound(text string, t reflect.Type) int64 {
	v := reflect.New(t).Elem()
	var err error
	if s, ok := reflect.TypeAssert[scalar](v.Addr()); ok {
		err = s.parse(text)
	} else if t == reflect.TypeFor[time.Duration]() {
		err = parseDuration(text, v)
	} else {
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	}
	invariant(err)
	return v.Int()
}

// invariant panics where the types or tags of Config themselves are wrong: no
// file can be the reason, and any test that reads the key finds it.
func invariant(err error) {
	if err != nil {
		panic("config: " + err.Error()) //nolint:forbidigo // a fault of this package's own source
	}
}

package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
)

// exportTLS returns the TLS of the exporter of a signal. Its files are read at
// each handshake, so that one that was replaced is used as of the next
// connection, which the SDK's own reading of these variables can't do. It is nil
// where no file is named, or where the endpoint is plain text.
func (e environment) exportTLS(signal string) *tls.Config {
	value := func(name string) string {
		if v := e.value("OTEL_EXPORTER_OTLP_" + signal + "_" + name); v != "" {
			return v
		}
		return e.value("OTEL_EXPORTER_OTLP_" + name)
	}
	f := &tlsFiles{ca: value("CERTIFICATE"), cert: value("CLIENT_CERTIFICATE"), key: value("CLIENT_KEY")}
	if f.ca == "" && (f.cert == "" || f.key == "") {
		return nil
	}
	// What is wrong with an endpoint, the exporter says. Of several, which only
	// gRPC's own resolvers take, it reads the files once.
	scheme, host := endpointHost(value("ENDPOINT"))
	plain := scheme == "http" || scheme == "unix" || scheme != "https" && strings.EqualFold(value("INSECURE"), "true")
	if host == "" || plain {
		return nil
	}
	f.host = host
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.cert != "" && f.key != "" {
		c.GetClientCertificate = f.clientCertificate
	}
	if f.ca != "" {
		// The authorities of a tls.Config are fixed. verify does all that is left
		// out here, with those that there are now.
		c.InsecureSkipVerify = true
		c.VerifyConnection = f.verify
	}
	return c
}

// endpointHost returns the scheme of an endpoint and the one host that it names,
// "" where it names none. It is a URL of HTTP, or a target of gRPC: host:port, or
// with a resolver as in dns:host:port and dns:///host:port, whose name is the scheme
// then.
func endpointHost(endpoint string) (scheme, host string) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", ""
	}
	switch {
	case u.Scheme == "http", u.Scheme == "https", u.Scheme == "":
		return u.Scheme, u.Hostname()
	case u.Opaque != "" && strings.Trim(u.Opaque, "0123456789") == "":
		return "", u.Scheme // a host with its port reads as a scheme
	}
	target := u.Opaque + strings.TrimPrefix(u.Path, "/")
	if host, _, err = net.SplitHostPort(target); err == nil {
		return u.Scheme, host
	}
	if strings.ContainsAny(target, ":,/") {
		return u.Scheme, ""
	}
	return u.Scheme, target
}

// tlsFiles are the files of an exporter. What was read last without a fault is
// kept: a file that is just being replaced breaks no connection.
type tlsFiles struct {
	ca, cert, key string
	host          string // of the endpoint, which its certificate has to name

	mu          sync.Mutex
	authorities *x509.CertPool
	own         *tls.Certificate
}

func (f *tlsFiles) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err == nil {
		f.own = &c
	}
	if f.own == nil {
		return nil, fmt.Errorf("reading the exporter's certificate: %w", err)
	}
	return f.own, nil
}

func (f *tlsFiles) verify(s tls.ConnectionState) error {
	roots, err := f.roots()
	if err != nil {
		return err
	}
	if len(s.PeerCertificates) == 0 {
		return errors.New("verifying the collector: it showed no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, DNSName: f.host, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(o); err != nil {
		return fmt.Errorf("verifying the collector: %w", err)
	}
	return nil
}

func (f *tlsFiles) roots() (*x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pem, err := os.ReadFile(f.ca)
	if pool := x509.NewCertPool(); err == nil && pool.AppendCertsFromPEM(pem) {
		f.authorities = pool
	}
	if f.authorities == nil {
		return nil, fmt.Errorf("reading the collector's authorities from %s: %w", f.ca, errors.Join(err, errNoCertificate))
	}
	return f.authorities, nil
}

var errNoCertificate = errors.New("there is no certificate")

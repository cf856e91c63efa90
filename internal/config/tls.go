package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ServerConfig reads the files and returns what a server needs. With ClientCA
// a client has to show a certificate of one of those authorities.
func (t *TLS) ServerConfig() (*tls.Config, error) {
	cert, err := t.certificate()
	if err != nil {
		return nil, fmt.Errorf("cert: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if t.ClientCA == "" {
		return c, nil
	}
	if c.ClientCAs, err = t.authorities(); err != nil {
		return nil, fmt.Errorf("client_ca: %w", err)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

func (t *TLS) certificate() (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate: %w", err)
	}
	return cert, nil
}

func (t *TLS) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("read the authorities: no certificate in " + t.ClientCA)
	}
	return pool, nil
}

// Files are the paths of the files that ServerConfig reads.
func (t *TLS) Files() []string {
	files := []string{t.Cert, t.Key}
	if t.ClientCA != "" {
		files = append(files, t.ClientCA)
	}
	return files
}

package main

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"github.com/inferspan/inferspan/internal/config"
)

// certificates are those of one server, which new connections get as the files
// were when last read without a fault.
type certificates struct {
	files   config.TLS
	proto   string // what ALPN offers
	current atomic.Pointer[tls.Config]
	watched *watched
}

// newCertificates reads the files of the named key of the configuration.
func newCertificates(key string, files config.TLS, proto string) (*certificates, error) {
	c := &certificates{files: files, proto: proto, watched: watch(key, files.Files())}
	c.watched.read = c.read
	if err := c.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return c, nil
}

func (c *certificates) read() error {
	t, err := c.files.ServerConfig()
	if err != nil {
		return err
	}
	t.NextProtos = []string{c.proto}
	// A resumed session would outlive the authority that it was trusted by.
	t.SessionTicketsDisabled = true
	c.current.Store(t)
	return nil
}

// server returns what a server needs.
func (c *certificates) server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{c.proto},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil },
	}
}

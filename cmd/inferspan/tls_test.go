package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// authority signs certificates, for 127.0.0.1 and for clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate, signed by parent or, with nil, by itself.
func issue(t *testing.T, name string, parent *authority) (a *authority, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  parent == nil,
		BasicConstraintsValid: true,
	}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a = &authority{cert: cert, key: key, file: filepath.Join(dir, "cert.pem")}
	keyFile = filepath.Join(dir, "key.pem")
	writePEM(t, a.file, "CERTIFICATE", der)
	writePEM(t, keyFile, "EC PRIVATE KEY", keyDER)
	return a, keyFile
}

func TestServe_TLS(t *testing.T) {
	ca, _ := issue(t, "ca", nil)
	server, serverKey := issue(t, "server", ca)
	client, clientKey := issue(t, "client", ca)
	stranger, strangerKey := issue(t, "stranger", nil)

	creds := func(cert *authority, key string) credentials.TransportCredentials {
		c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		c.RootCAs.AddCert(ca.cert)
		if cert != nil {
			pair, err := tls.LoadX509KeyPair(cert.file, key)
			if err != nil {
				t.Fatal(err)
			}
			// Shown whatever authorities the server asks for.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return credentials.NewTLS(c)
	}
	f := func(config, want string, c credentials.TransportCredentials) {
		t.Helper()
		s := startServe(t, atAnyPort+"tls: {cert: "+server.file+", key: "+serverKey+config+"}\n")
		if got := healthOf(t, dial(t, s.listen, c), ""); got != want {
			t.Errorf("health: %s, want %s", got, want)
		}
	}
	f("", "SERVING", creds(nil, ""))
	mutual := ", client_ca: " + ca.file
	f(mutual, "SERVING", creds(client, clientKey))
	f(mutual, "Unavailable", creds(nil, ""))
	f(mutual, "Unavailable", creds(stranger, strangerKey))
}

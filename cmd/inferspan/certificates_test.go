package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
)

// copyTo has file hold what from holds.
func copyTo(t *testing.T, file, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func trusting(a *authority) *tls.Config {
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	c.RootCAs.AddCert(a.cert)
	return c
}

// Certificates change under both servers; connections go on, and files that
// can't be used change nothing.
func TestCertificates(t *testing.T) {
	oldCA, _ := issue(t, "old", nil)
	newCA, _ := issue(t, "new", nil)
	server, serverKey := issue(t, "server", oldCA)
	next, nextKey := issue(t, "server", newCA)

	pair := "{cert: " + server.file + ", key: " + serverKey + "}\n"
	text := atAnyPort + onePool + "tls: " + pair + "admin_tls: " + pair
	s := startServe(t, text)
	text = "admin: 127.0.0.1:0\n" + text
	s.admin = strings.Replace(s.admin, "http:", "https:", 1)

	page := func(ca *authority) string {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(ca), DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return "refused"
		}
		_ = resp.Body.Close()
		return resp.Status
	}
	health := func(ca *authority) string {
		return healthOf(t, dial(t, s.listen, credentials.NewTLS(trusting(ca))), "")
	}
	f := func(ca, other *authority) {
		t.Helper()
		if h, p := health(ca), page(ca); h != "SERVING" || p != "200 OK" {
			t.Errorf("with the right authority: health %s, page %s", h, p)
		}
		if h, p := health(other), page(other); h != "Unavailable" || p != "refused" {
			t.Errorf("with the wrong authority: health %s, page %s", h, p)
		}
	}
	conn := dial(t, s.listen, credentials.NewTLS(trusting(oldCA)))
	healthOf(t, conn, "") // connects
	f(oldCA, newCA)

	copyTo(t, server.file, next.file) // without its key
	if line := s.reload(t, text, refused); line["part"] != partFile {
		t.Errorf("the line is %v", line)
	}
	for _, part := range []string{"tls", "admin_tls"} {
		if line := s.logs.await(t, refused); line["part"] != part {
			t.Errorf("the line is %v, want that of %s", line, part)
		}
	}
	f(oldCA, newCA)

	copyTo(t, serverKey, nextKey)
	s.reload(t, text, read)
	s.logs.await(t, "certificates read")
	s.logs.await(t, "certificates read")
	f(newCA, oldCA)
	if got := healthOf(t, conn, ""); got != "SERVING" {
		t.Errorf("a connection from before: %s", got)
	}
}

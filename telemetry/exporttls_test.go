package telemetry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"
)

// identity is a certificate for 127.0.0.1, which signs itself.
type identity struct{ cert, key []byte }

func newIdentity(t *testing.T, name string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// server returns the TLS of a server that asks any client for its certificate.
func (i identity) server(t *testing.T) *tls.Config {
	t.Helper()
	c, err := tls.X509KeyPair(i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
}

// exporterFiles are the files of an exporter, which a test replaces.
type exporterFiles struct {
	t   *testing.T
	dir string
}

func (f exporterFiles) put(name string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f exporterFiles) path(name string) string { return filepath.Join(f.dir, name) }

func (f exporterFiles) use(ca, own identity) {
	f.t.Helper()
	f.put("ca", ca.cert)
	f.put("cert", own.cert)
	f.put("key", own.key)
}

func (f exporterFiles) environ() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE=" + f.path("ca"), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + f.path("cert"),
		"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=" + f.path("key"),
	}
}

// shakeHands returns the name of the client's certificate, as a server that is
// by has seen it, or the fault.
func shakeHands(t *testing.T, client *tls.Config, by identity) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	name := make(chan string, 1)
	go func() {
		far, err := l.Accept()
		if err != nil {
			name <- err.Error()
			return
		}
		defer func() { _ = far.Close() }()
		s := tls.Server(far, by.server(t))
		if err := s.HandshakeContext(t.Context()); err != nil {
			name <- "the server: " + err.Error()
			return
		}
		name <- s.ConnectionState().PeerCertificates[0].Subject.CommonName
	}()
	near, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	client = client.Clone()
	client.ServerName = "127.0.0.1"
	if err := tls.Client(near, client).HandshakeContext(t.Context()); err != nil {
		_ = near.Close()
		<-name
		return err.Error()
	}
	return <-name
}

func TestExportTLS_ReadsAnew(t *testing.T) {
	f := exporterFiles{t, t.TempDir()}
	oldServer, newServer := newIdentity(t, "s1"), newIdentity(t, "s2")
	first, second := newIdentity(t, "first"), newIdentity(t, "second")
	e := environment{get: environ(append(f.environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:4317")...), log: quiet().Logger}
	c := e.exportTLS("TRACES")
	want := func(by identity, want string) {
		t.Helper()
		if got := shakeHands(t, c, by); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want(oldServer, "no such file")
	f.use(oldServer, first)
	want(oldServer, "first")
	want(newServer, "verifying the collector: x509: certificate signed by unknown authority")
	f.use(newServer, second)
	want(newServer, "second")
	want(oldServer, "unknown authority")
	f.use(identity{cert: []byte("half")}, identity{})
	want(newServer, "second") // as they were last read
}

func TestExportTLS_Host(t *testing.T) {
	f := exporterFiles{t, t.TempDir()}
	server := newIdentity(t, "s")
	f.use(server, server)
	for endpoint, want := range map[string]string{
		"https://127.0.0.1:4317": "s", "https://127.0.0.2:4317": "x509: certificate is valid for 127.0.0.1, not 127.0.0.2",
		"https://collector": "x509: certificate is not valid for any names",
	} {
		e := environment{get: environ(append(f.environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)...), log: quiet().Logger}
		if got := shakeHands(t, e.exportTLS("TRACES"), server); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", endpoint, got, want)
		}
	}
}

func TestEndpointHost(t *testing.T) {
	for endpoint, want := range map[string][2]string{
		"https://collector:4317": {"https", "collector"}, "HTTP://collector": {"http", "collector"}, "https://[::1]:4317/base": {"https", "::1"},
		"collector:4317": {"", "collector"}, "//collector:4317": {"", "collector"},
		"dns:///collector:4317": {"dns", "collector"}, "dns:collector:4317": {"dns", "collector"}, "dns:///collector": {"dns", "collector"},
		"dns://resolver/collector:4317": {"dns", "collector"}, "passthrough:///[::1]:4317": {"passthrough", "::1"},
		"ipv4:10.0.0.1:4317,10.0.0.2:4317": {"ipv4", ""}, "unix:///run/otel.sock": {"unix", ""}, ":": {"", ""}, "": {"", ""},
	} {
		if scheme, host := endpointHost(endpoint); scheme != want[0] || host != want[1] {
			t.Errorf("%s: %q, %q, want %q", endpoint, scheme, host, want)
		}
	}
}

func TestExportTLS_NotNeeded(t *testing.T) {
	const ca = "OTEL_EXPORTER_OTLP_CERTIFICATE=ca"
	for _, env := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://a"},
		{ca, "OTEL_EXPORTER_OTLP_ENDPOINT=http://a"},
		{ca, "OTEL_EXPORTER_OTLP_ENDPOINT=https://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a"},
		{ca, "OTEL_EXPORTER_OTLP_ENDPOINT=grpc://a", "OTEL_EXPORTER_OTLP_INSECURE=true"},
		{ca, "OTEL_EXPORTER_OTLP_ENDPOINT=unix:/run/otel.sock"},
		{ca, "OTEL_EXPORTER_OTLP_ENDPOINT=a:4317", "OTEL_EXPORTER_OTLP_INSECURE=true"},
		{ca}, {ca, "OTEL_EXPORTER_OTLP_ENDPOINT=:"},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY=key", "OTEL_EXPORTER_OTLP_ENDPOINT=https://a"},
	} {
		if c := (environment{get: environ(env...), log: quiet().Logger}).exportTLS("TRACES"); c != nil {
			t.Errorf("%v: %+v, want none", env, c)
		}
	}
}

// Both protocols export over it.
func TestExportTLS_Exports(t *testing.T) {
	f := exporterFiles{t, t.TempDir()}
	server := newIdentity(t, "s")
	f.use(server, newIdentity(t, "client"))

	var overHTTP, overGRPC atomic.Int64
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		overHTTP.Add(1)
	}))
	h.TLS = server.server(t)
	h.StartTLS()
	defer h.Close()
	addr := serveGRPC(t, grpc.NewServer(grpc.Creds(credentials.NewTLS(server.server(t))), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		overGRPC.Add(1)
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return s.SendMsg(&emptypb.Empty{})
	})))

	for _, pair := range append(f.environ(), "OTEL_EXPORTER_OTLP_CLIENT_KEY="+f.path("key")) {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	for endpoint, protocol := range map[string]string{
		h.URL: protocolHTTP, "https://" + addr: protocolGRPC, "dns:///" + addr: protocolGRPC,
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		c := quiet()
		c.Getenv = nil
		tel, err := New(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		play(tel, richRecord())
		shut(t, tel)
	}
	if overHTTP.Load() < 2 || overGRPC.Load() < 4 {
		t.Errorf("%d exports over HTTP, %d over gRPC, want spans and metrics over both", overHTTP.Load(), overGRPC.Load())
	}
}

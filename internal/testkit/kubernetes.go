package testkit

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// adminToken is the token of Kubernetes' administrator.
const adminToken = "testkit"

// Kubernetes is a control plane without controllers, scheduler or nodes: an API
// server and the etcd that keeps its objects. What controllers would do, as
// marking pods ready, is left to its user. It outlives a stop of the API server.
type Kubernetes struct {
	addr string // of the API server
	dir  string
	args []string // of the API server
	api  *Process // nil while it is stopped
	etcd *Process
}

// StartKubernetes starts a control plane that keeps its files in dir, and
// returns when it is ready.
func StartKubernetes(ctx context.Context, dir string) (*Kubernetes, error) {
	var addrs [3]string
	for i := range addrs {
		var err error
		if addrs[i], err = FreeAddr(); err != nil {
			return nil, err
		}
	}
	k := &Kubernetes{addr: addrs[0], dir: dir}
	clients, peers := "http://"+addrs[1], "http://"+addrs[2]
	if err := k.prepare(clients); err != nil {
		return nil, fmt.Errorf("preparing Kubernetes: %w", err)
	}
	etcd, err := Tool("etcd")
	if err != nil {
		return nil, err
	}
	k.etcd, err = StartProcess("etcd", etcd, []string{
		"--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := k.StartAPI(ctx); err != nil {
		k.etcd.Kill()
		return nil, err
	}
	return k, nil
}

// prepare writes the API server's files and sets its arguments.
func (k *Kubernetes) prepare(etcd string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making a key for service accounts: %w", err)
	}
	account := filepath.Join(k.dir, "service-account.key")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	tokens := filepath.Join(k.dir, "tokens.csv")
	if err := errors.Join(
		os.WriteFile(account, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(tokens, []byte(adminToken+`,admin,admin,"system:masters"`+"\n"), 0o600),
	); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(k.addr)
	if err != nil {
		return err
	}
	k.args = []string{
		"--etcd-servers=" + etcd, "--bind-address=" + host, "--secure-port=" + port, "--advertise-address=" + host,
		"--endpoint-reconciler-type=none", "--cert-dir=" + k.certificates(), "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + account, "--service-account-signing-key-file=" + account,
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		// It waits for what a controller makes.
		"--disable-admission-plugins=ServiceAccount",
		"--shutdown-delay-duration=0s",
	}
	return nil
}

func (k *Kubernetes) certificates() string { return filepath.Join(k.dir, "certificates") }

// StartAPI starts the API server, where it was stopped, at the same address.
func (k *Kubernetes) StartAPI(ctx context.Context) error {
	bin, err := Tool("kube-apiserver")
	if err != nil {
		return err
	}
	if k.api, err = StartProcess("kube-apiserver", bin, k.args, nil); err != nil {
		return err
	}
	if err := k.waitReady(ctx); err != nil {
		err = fmt.Errorf("waiting for the API server: %w; it wrote:\n%s", err, k.api.Log())
		k.StopAPI()
		return err
	}
	return nil
}

func (k *Kubernetes) waitReady(ctx context.Context) error {
	return Poll(ctx, func(ctx context.Context) error {
		select {
		case <-k.api.Done():
			return errors.New("it ended")
		default:
		}
		authority, err := os.ReadFile(k.authority())
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		client := &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+k.addr+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d: %.200s: %w", resp.StatusCode, body, err)
		}
		return nil
	})
}

// authority is the file of the certificate that the API server shows, which it
// has signed itself.
func (k *Kubernetes) authority() string { return filepath.Join(k.certificates(), "apiserver.crt") }

// StopAPI ends the API server at once, as a crash does; its objects stay.
func (k *Kubernetes) StopAPI() {
	if k.api != nil {
		k.api.Kill()
		k.api = nil
	}
}

// Stop ends it all.
func (k *Kubernetes) Stop() {
	k.StopAPI()
	k.etcd.Kill()
}

// Kubeconfig writes a kubeconfig, whose context has this namespace, and returns
// its path. Its user is the administrator, or acts as user where one is named,
// such as system:serviceaccount:NAMESPACE:NAME.
func (k *Kubernetes) Kubeconfig(namespace, user string) (string, error) {
	f, err := os.CreateTemp(k.dir, "kubeconfig-")
	if err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	_, err = fmt.Fprintf(f, `apiVersion: v1
kind: Config
current-context: testkit
contexts: [{name: testkit, context: {cluster: testkit, user: testkit, namespace: %q}}]
clusters: [{name: testkit, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: testkit, user: {token: %q, as: %q}}]
`, namespace, k.addr, k.authority(), adminToken, user)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return f.Name(), nil
}

package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// EnvoyBinary returns the path of the real Envoy: INFERSPAN_ENVOY, else what
// `make tools` put into the checkout, else the user's cache.
func EnvoyBinary() (string, error) {
	if path := os.Getenv("INFERSPAN_ENVOY"); path != "" {
		return path, nil
	}
	places := []string{}
	if root, err := ModuleRoot(); err == nil {
		places = append(places, filepath.Join(root, ".tools"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, ".cache", "inferspan", "tools"))
	}
	for _, place := range places {
		path := filepath.Join(place, "envoy", "bin", "envoy")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Envoy in %s: run `make tools`, or set INFERSPAN_ENVOY to a binary of 1.40", strings.Join(places, " or "))
}

// ModuleRoot returns the directory of the go.mod above the working directory.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module's root: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("finding the module's root: no go.mod above the working directory")
		}
		dir = up
	}
}

// Envoy is a running Envoy.
type Envoy struct {
	*Process
	admin string
}

// ValidateEnvoy has Envoy check a configuration without running it.
func ValidateEnvoy(ctx context.Context, config string) error {
	bin, err := EnvoyBinary()
	if err != nil {
		return err
	}
	p, err := StartProcess("envoy", bin, []string{"--mode", "validate", "--disable-hot-restart", "-c", config}, nil)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("validating %s: %w", config, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("validating %s: %w\n%s", config, p.err, p.Log())
	}
	return nil
}

// StartEnvoy starts Envoy with a configuration, two workers and dir for its
// files, and returns when it is ready. The configuration's admin and listener
// ports may be 0.
func StartEnvoy(ctx context.Context, config, dir string) (*Envoy, error) {
	bin, err := EnvoyBinary()
	if err != nil {
		return nil, err
	}
	adminFile := filepath.Join(dir, "admin-address")
	p, err := StartProcess("envoy", bin, []string{
		"-c", config, "--disable-hot-restart", "--concurrency", "2", "--log-level", "warning",
		"--admin-address-path", adminFile,
	}, nil)
	if err != nil {
		return nil, err
	}
	e := &Envoy{Process: p}
	ready := func(ctx context.Context) error {
		select {
		case <-p.Done():
			return nil // not ready, but nothing to wait for
		default:
		}
		addr, err := os.ReadFile(adminFile)
		if err != nil {
			return err
		}
		e.admin = string(addr)
		_, err = e.Admin(ctx, "/ready")
		return err
	}
	if err := Poll(ctx, ready); err != nil {
		p.Kill()
		return nil, fmt.Errorf("starting Envoy: %w\n%s", err, p.Log())
	}
	select {
	case <-p.Done():
		return nil, fmt.Errorf("Envoy ended at its start: %w\n%s", p.err, p.Log())
	default:
		return e, nil
	}
}

// StartDelivered starts Envoy with the file of deploy/envoy that is named, with
// the addresses a in it; dir is for Envoy's files.
func StartDelivered(ctx context.Context, name string, a EnvoyAddrs, dir string) (*Envoy, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join(root, "deploy", "envoy", name))
	if err != nil {
		return nil, fmt.Errorf("reading Envoy's configuration: %w", err)
	}
	config, err := RenderEnvoy(string(file), a)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing Envoy's configuration: %w", err)
	}
	return StartEnvoy(ctx, path, dir)
}

// Admin gets a page of Envoy's admin interface.
func (e *Envoy) Admin(ctx context.Context, path string) ([]byte, error) {
	return Get(ctx, "http://"+e.admin+path)
}

// AdminAddr returns the ip:port of the admin interface.
func (e *Envoy) AdminAddr() string { return e.admin }

// ListenerAddr returns the ip:port where the named listener listens.
func (e *Envoy) ListenerAddr(ctx context.Context, name string) (string, error) {
	page, err := e.Admin(ctx, "/listeners?format=json")
	if err != nil {
		return "", err
	}
	var listeners struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(page, &listeners); err != nil {
		return "", fmt.Errorf("reading Envoy's listeners: %w", err)
	}
	for _, l := range listeners.Statuses {
		if l.Name == name {
			return fmt.Sprintf("%s:%d", l.Address.Socket.Address, l.Address.Socket.Port), nil
		}
	}
	return "", fmt.Errorf("Envoy has no listener %q: %s", name, page)
}

// Stat returns one of Envoy's counters or gauges, 0 where it has none of that
// name.
func (e *Envoy) Stat(ctx context.Context, name string) (int64, error) {
	page, err := e.Admin(ctx, "/stats?format=json&filter=^"+name+"$")
	if err != nil {
		return 0, err
	}
	var stats struct {
		Stats []struct {
			Value int64 `json:"value"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(page, &stats); err != nil {
		return 0, fmt.Errorf("reading Envoy's %s: %w", name, err)
	}
	if len(stats.Stats) == 0 {
		return 0, nil
	}
	return stats.Stats[0].Value, nil
}

package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/inferspan/inferspan/journal"
)

// BuildInferspan builds the inferspan binary into dir, with flags of `go build`
// such as -race, and returns its path. INFERSPAN_BINARY names one that is built
// already.
func BuildInferspan(ctx context.Context, dir string, flags ...string) (string, error) {
	if path := os.Getenv("INFERSPAN_BINARY"); path != "" {
		return path, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "inferspan")
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", path}, flags, []string{"./cmd/inferspan"})...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building inferspan: %w\n%s", err, out)
	}
	return path, nil
}

// Inferspan is a running `inferspan serve`.
type Inferspan struct {
	*Process
	// Listen and Admin are where it serves ext_proc and HTTP.
	Listen, Admin string
}

// InferspanOptions tune a StartInferspan.
type InferspanOptions struct {
	Binary string
	// Dir takes the configuration file.
	Dir string
	// Listen is where it serves ext_proc; empty: a free port.
	Listen string
	// Config is what the configuration holds beside listen and admin.
	Config string
	Env    []string
}

// StartInferspan starts `inferspan serve` and returns when it is ready.
func StartInferspan(ctx context.Context, o InferspanOptions) (*Inferspan, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	file := filepath.Join(o.Dir, "inferspan.yaml")
	config := fmt.Sprintf("listen: %s\nadmin: 127.0.0.1:0\n%s", o.Listen, o.Config)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("starting inferspan: %w", err)
	}
	p, err := StartProcess("inferspan", o.Binary, []string{"serve", "--config", file}, o.Env)
	if err != nil {
		return nil, err
	}
	i := &Inferspan{Process: p}
	// The addresses are known to the process only: the kernel chose the ports.
	_, err = p.WaitLine(ctx, func(line string) bool {
		var said struct{ Msg, Listen, Admin string }
		if json.Unmarshal([]byte(line), &said) != nil || said.Msg != "ready" {
			return false
		}
		i.Listen, i.Admin = said.Listen, said.Admin
		return true
	})
	if err == nil {
		err = Poll(ctx, func(ctx context.Context) error {
			_, err := Get(ctx, "http://"+i.Admin+"/readyz")
			return err
		})
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("starting inferspan: %w", err)
	}
	return i, nil
}

// Lookup returns the records that the admin API has of an id, newest first.
func (i *Inferspan) Lookup(ctx context.Context, id string) ([]map[string]any, error) {
	page, err := Get(ctx, "http://"+i.Admin+journal.Path(id))
	if err != nil {
		return nil, err
	}
	var records []map[string]any
	for line := range bytes.Lines(page) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the record of %s: %w in %.200s", id, err, line)
		}
		records = append(records, r)
	}
	return records, nil
}

// FreeAddr returns an address of 127.0.0.1 that nothing listens on, for programs
// that can't tell which port they were given. Another process may come first:
// where there is a choice, have the program listen on port 0.
func FreeAddr() (string, error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return addr, nil
}

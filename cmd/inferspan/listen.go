package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/inferspan/inferspan/internal/config"
)

// socketMode lets Envoy connect as another user of the same group.
const socketMode = 0o660

// listen opens the address of the named key of the configuration. A socket that
// a process left behind is replaced, one that is served is not.
func listen(ctx context.Context, key string, l config.Listen) (net.Listener, error) {
	if l.Network == "unix" {
		if err := removeStale(ctx, l.Address); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", key, l, err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, l.Network, l.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", key, l, explain(l, err))
	}
	if l.Network == "unix" {
		if err := os.Chmod(l.Address, socketMode); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %s: set the mode of the socket: %w", key, l, err), ln.Close())
		}
	}
	return ln, nil
}

// removeStale removes the socket at path if nobody listens on it.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for an old socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is no socket: remove it, or choose another path")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(errors.New("another process serves on this socket: stop it, or choose another path"), conn.Close())
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("see whether the old socket is still served: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}

// explain says what to do about an address that can't be listened on.
func explain(l config.Listen, err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err // the address is named already
	}
	var hint string
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop the process that listens there, or choose another address"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "no interface of this machine has this address"
	case errors.Is(err, syscall.ENOENT):
		hint = "create the directory " + filepath.Dir(l.Address)
	case errors.Is(err, fs.ErrPermission) && l.Network == "unix":
		hint = "this user may not write in " + filepath.Dir(l.Address)
	case errors.Is(err, fs.ErrPermission):
		hint = "this user may not use this port: choose one from 1024 up"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

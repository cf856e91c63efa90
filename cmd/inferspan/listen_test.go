package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/config"
)

func TestListen_UnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	at := config.Listen{Network: "unix", Address: path}
	first, err := listen(t.Context(), "listen", at)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("mode of the socket: %v %v, want %o", info.Mode(), err, socketMode)
	}
	if _, err := listen(t.Context(), "listen", at); err == nil || !strings.Contains(err.Error(), "another process serves on this socket") {
		t.Errorf("a served socket was taken: %v", err)
	}

	// What a killed process leaves behind.
	unixListener, ok := first.(*net.UnixListener)
	if !ok {
		t.Fatalf("a %T", first)
	}
	unixListener.SetUnlinkOnClose(false)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := listen(t.Context(), "listen", at)
	if err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestListen_Failure(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	f := func(network, addr, want string) {
		t.Helper()
		_, err := listen(t.Context(), "listen", config.Listen{Network: network, Address: addr})
		if err == nil || err.Error() != want {
			t.Errorf("listen on %s: %v\nwant %s", addr, err, want)
		}
	}
	f("unix", file, "listen: unix:"+file+": there is a file that is no socket: remove it, or choose another path")
	f("unix", dir+"/no/s", "listen: unix:"+dir+"/no/s: bind: no such file or directory: create the directory "+dir+"/no")
	addr := taken.Addr().String()
	f("tcp", addr, "listen: "+addr+": bind: address already in use: stop the process that listens there, or choose another address")
	f("tcp", "192.0.2.1:1", "listen: 192.0.2.1:1: bind: cannot assign requested address: no interface of this machine has this address")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file was touched: %v", err)
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/config"
)

// watching is a reloader of two files and what it read.
type watching struct {
	*reloader

	t    *testing.T
	a, b string
	read chan string
}

func newWatching(t *testing.T) *watching {
	t.Helper()
	dir := t.TempDir()
	w := &watching{t: t, a: filepath.Join(dir, "a"), b: filepath.Join(dir, "b"), read: make(chan string, 100)}
	w.write(w.a, "one")
	w.write(w.b, "two")
	w.reloader = &reloader{report: func(part string, err error) { w.read <- part + ": " + err.Error() }}
	for _, file := range []string{w.a, w.b} {
		part := watch(filepath.Base(file), []string{file})
		part.read = func() error {
			text, err := os.ReadFile(file)
			if err != nil {
				return errors.New("gone")
			}
			return errors.New(string(text))
		}
		w.parts = append(w.parts, part)
	}
	return w
}

func (w *watching) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// want looks n times, or reads every part, and wants these to have been read.
func (w *watching) want(n int, every bool, want ...string) {
	w.t.Helper()
	for range n {
		w.look(every)
	}
	var got []string
	for len(w.read) > 0 {
		got = append(got, <-w.read)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestReloader(t *testing.T) {
	w := newWatching(t)
	w.want(3, false)
	w.write(w.b, "half")
	w.want(1, false)
	w.write(w.b, "whole") // it was still being written
	w.want(3, false, "b: whole")
	w.write(w.a, "other")
	if err := os.Remove(w.b); err != nil {
		t.Fatal(err)
	}
	w.want(3, false, "a: other", "b: gone")
	w.want(3, false) // a fault is told once
	w.want(1, true, "a: other", "b: gone")
	w.want(3, false)
	w.write(w.b, "two") // what it held once is no reason not to read it
	w.want(3, false, "b: two")
	w.write(w.b, "asked for")
	w.want(1, true, "a: other", "b: asked for")
	w.want(3, false)
}

func TestReloader_Run(t *testing.T) {
	w := newWatching(t)
	ctx, cancel := context.WithCancel(t.Context())
	ticks, signals, ended := make(chan time.Time), make(chan os.Signal), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, ticks, signals)
	}()
	w.write(w.a, "other")
	for range 2 {
		ticks <- time.Time{}
	}
	if got := <-w.read; got != "a: other" {
		t.Errorf("at a tick, read %q", got)
	}
	signals <- os.Interrupt
	if first, second := <-w.read, <-w.read; first != "a: other" || second != "b: two" {
		t.Errorf("at a signal, read %q and %q", first, second)
	}
	cancel()
	<-ended
}

// Bytes that move from one file to the next are a change.
func TestDigestOf(t *testing.T) {
	w := newWatching(t)
	files := []string{w.a, w.b}
	before := digestOf(files)
	w.write(w.a, "onet")
	w.write(w.b, "wo")
	if digestOf(files) == before {
		t.Error("the same digest for other files")
	}
}

// What is read is not taken away from a pipe, and nobody waits for one.
func TestWatchLeavesPipesAlone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	w := watch("pipe", []string{pipe}) // blocks where it is opened
	if w.due() {
		t.Error("a pipe is due")
	}
	if _, err := config.Reload(pipe); err == nil || !strings.HasSuffix(err.Error(), "is no regular file, and can't be read anew") {
		t.Errorf("read anew: %v", err)
	}
}

package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// maxLog is how much of a process's output is kept, in bytes: its last part.
const maxLog = 1 << 20

// Process is a child process with its output. It is safe for concurrent use.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; read after done
	out  output
}

// StartProcess starts bin. env is added to the environment of this process.
func StartProcess(name, bin string, args, env []string) (*Process, error) {
	p := &Process{name: name, done: make(chan struct{}), out: output{more: make(chan struct{})}}
	// The context of Command would kill the child by itself; here the caller
	// decides between Stop and Kill.
	p.cmd = exec.CommandContext(context.Background(), bin, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	// A Ctrl-C is for this process, which then ends its children in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when the process has ended
	<-p.done
}

// test is what KillAtEnd needs of a testing.TB; the demo, too, is built with this
// package, and not with that one.
type test interface {
	Helper()
	Cleanup(f func())
	Failed() bool
	Logf(format string, args ...any)
}

// KillAtEnd kills the process when the test has ended, and shows what it wrote
// where the test failed.
func (p *Process) KillAtEnd(t test) {
	t.Helper()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", p.name, p.Log())
		}
	})
}

// Stop asks the process to end (SIGTERM) and returns how it did: nil for exit
// code 0. When ctx ends first the process is killed.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stopping %s: %w; it was killed", p.name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.name, p.err)
	}
	return nil
}

// Log returns the last part of what the process wrote.
func (p *Process) Log() string { return p.out.String() }

// WaitLine returns the first kept line of the output that matches.
func (p *Process) WaitLine(ctx context.Context, match func(line string) bool) (string, error) {
	for {
		text, more := p.out.read()
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && match(line) {
				return strings.TrimSpace(line), nil
			}
		}
		select {
		case <-more:
		case <-p.done:
			return "", fmt.Errorf("%s ended before the expected line: %w; it wrote:\n%s", p.name, p.err, p.Log())
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for a line of %s: %w; it wrote:\n%s", p.name, ctx.Err(), p.Log())
		}
	}
}

// output keeps the last maxLog bytes written to it.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed and replaced at each write
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b)
	if over := o.buf.Len() - maxLog; over > 0 {
		o.buf.Next(over)
	}
	close(o.more)
	o.more = make(chan struct{})
	return len(b), nil
}

func (o *output) String() string { s, _ := o.read(); return s }

func (o *output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String(), o.more
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/grpc/credentials/insecure"
)

// program starts `serve` as a process of its own. How it ends comes on ended.
func program(t *testing.T, text string) (p *os.Process, logs logLines, ended <-chan error) {
	t.Helper()
	logs = make(logLines, 1000)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--config", write(t, text))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() {
		for lines := json.NewDecoder(stderr); ; {
			var line logLine
			if lines.Decode(&line) != nil {
				break
			}
			logs <- line
		}
		end <- cmd.Wait()
		logs <- logLine{"msg": exited}
	}()
	return cmd.Process, logs, end
}

func TestSignal_First(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p, logs, ended := program(t, atAnyPort+"admin: 127.0.0.1:0\n")
		logs.await(t, "ready")
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("after %v: %v, want exit code 0", sig, err)
		}
		logs.await(t, "stop")
	}
}

// A stream in FULL_DUPLEX_STREAMED holds up the end, and a second signal does
// not wait for it.
func TestSignal_Second(t *testing.T) {
	p, logs, ended := program(t, atAnyPort+"admin: 127.0.0.1:0\n"+onePool)
	ready := logs.await(t, "ready")
	stream := openStream(t, dial(t, fmt.Sprint(ready["listen"]), insecure.NewCredentials()))
	if err := stream.Send(requestHeaders(filterv3.ProcessingMode_FULL_DUPLEX_STREAMED)); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(requestBody(askLlama)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	logs.await(t, "drain")
	if code, _ := ask(t, "http://"+fmt.Sprint(ready["admin"])+"/readyz"); code != 503 {
		t.Errorf("/readyz while draining: %d", code)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("after the second signal: %v, want exit code 1", err)
	}
}

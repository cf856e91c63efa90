package testkit

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProcessEndsAsAsked(t *testing.T) {
	p, err := StartProcess("shell", "/bin/sh", []string{"-c", `trap 'echo bye $WHO; exit 0' TERM; echo ready; while :; do read x; done <&-`}, []string{"WHO=you"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitLine(t.Context(), func(l string) bool { return l == "ready\n" }); err != nil {
		p.Kill()
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(p.Log(), "bye you\n") {
		t.Errorf("log: %q", p.Log())
	}
}

func TestProcessTellsHowItFailed(t *testing.T) {
	p, err := StartProcess("shell", "/bin/sh", []string{"-c", "echo broken; exit 3"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.WaitLine(t.Context(), func(l string) bool { return l == "ready\n" })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
}

func TestRenderEnvoyWantsEachAddressOnce(t *testing.T) {
	_, err := RenderEnvoy("admin: {}", EnvoyAddrs{Processor: "127.0.0.1:1", VLLM: [2]string{"127.0.0.1:2", "127.0.0.1:3"}})
	if err == nil || !strings.Contains(err.Error(), "stands 0 times") {
		t.Errorf("got %v", err)
	}
}

package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChange(t *testing.T) {
	running := Default()
	next := Default()
	next.Pools = []Pool{poolOf("default", "127.0.0.1:8001")}
	next.Kubernetes.Kubeconfig = "/k"
	next.DrainTimeout = time.Minute
	next.Request.HoldLimit = mib
	next.Log = Log{Level: "debug", Format: "text"}
	next.Listen = Listen{Network: "unix", Address: "/run/s"}
	next.TLS = &TLS{Cert: "a", Key: "b"}
	next.Trace.Detail, next.Trace.Events = "off", "log"

	got, ch := running.Change(next)
	want := Default()
	want.Trace.Detail = "off"
	want.Pools, want.Kubernetes, want.DrainTimeout, want.Request.HoldLimit, want.Log.Level = next.Pools, next.Kubernetes, next.DrainTimeout, next.Request.HoldLimit, "debug"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the configuration (-want +got):\n%s", diff)
	}
	wantChange := Change{
		Applied: []string{"drain_timeout", "pools", "kubernetes.kubeconfig", "trace.detail", "request.hold_limit", "log.level"},
		Restart: []string{"listen", "tls", "trace.events", "log.format"},
	}
	if diff := cmp.Diff(wantChange, ch); diff != "" {
		t.Errorf("the change (-want +got):\n%s", diff)
	}
	if len(running.Pools) != 0 {
		t.Error("the running configuration was changed in place")
	}
	if _, ch := got.Change(got); ch.Applied != nil || ch.Restart != nil {
		t.Errorf("no change: %+v", ch)
	}
}

// The page lists the keys that change while the program runs, as the tags do.
func TestDocs_Change(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "Take effect at once: ")
	listed, _, _ := strings.Cut(after, ".\n")
	next, err := Load("testdata/valid-all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// valid-all.yaml differs from the default in every key.
	_, ch := Default().Change(next)
	want := "`" + strings.Join(ch.Applied, "`, `") + "`"
	if got := strings.Join(strings.Fields(listed), " "); got != want {
		t.Errorf("the page lists %s\nwant %s", got, want)
	}
}

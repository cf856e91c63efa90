//go:build e2e_k8s

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/testkit"
	"github.com/inferspan/inferspan/processor/route/kube"
)

// patience bounds every wait for something that should happen soon.
const patience = 60 * time.Second

// plane is the control plane of all tests; each has a namespace of its own.
var plane *testkit.Kubernetes

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code, err := inPlane(m)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func inPlane(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "inferspan-kubernetes-")
	if err != nil {
		return 1, fmt.Errorf("making a directory for Kubernetes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if plane, err = testkit.StartKubernetes(ctx, dir); err != nil {
		return 1, err
	}
	defer plane.Stop()
	kube.SetLogger(slog.DiscardHandler)
	if err := applyFile(ctx, "", "testdata/inferencepool-crd.yaml"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

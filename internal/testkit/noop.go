package testkit

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// StartNoop builds the stock external processor of internal/budget/noop into dir,
// starts it with env besides, and returns it with the address that it listens at.
// listen is ip:port or unix:PATH.
func StartNoop(ctx context.Context, dir, listen string, env ...string) (*Process, string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, "", err
	}
	bin := filepath.Join(dir, "noop")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./internal/budget/noop")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("building the stock processor: %w\n%s", err, out)
	}
	p, err := StartProcess("noop", bin, []string{"-listen", listen}, env)
	if err != nil {
		return nil, "", err
	}
	const says = "listen "
	line, err := p.WaitLine(ctx, func(line string) bool { return strings.HasPrefix(line, says) })
	if err != nil {
		p.Kill()
		return nil, "", fmt.Errorf("starting the stock processor: %w", err)
	}
	return p, strings.TrimPrefix(line, says), nil
}

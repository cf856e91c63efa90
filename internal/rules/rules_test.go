//go:build rules

package rules_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// failing finds the tests that failed.
var failing = regexp.MustCompile(`(?m)^--- FAIL: (Test\w+)`)

// TestEachRuleIsHeld: with any rule switched off a test of the core fails, other
// than the one that compares with a model.
func TestEachRuleIsHeld(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := runCore(t, root, ""); !ok {
		t.Fatalf("with every rule on:\n%s", out)
	}
	for _, r := range table {
		t.Run(r.name, func(t *testing.T) {
			out, ok := runCore(t, root, r.switchOff(t, root))
			failed := failing.FindStringSubmatch(out)
			switch {
			case ok:
				t.Errorf("no test fails without it")
			case failed == nil:
				t.Errorf("it could not be switched off:\n%s", out)
			default:
				t.Logf("held by %s", failed[1])
			}
		})
	}
}

// switchOff writes a copy of the rule's file without the rule, and returns the
// overlay that has the go command read it.
func (r rule) switchOff(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, r.file)
	source, err := os.ReadFile(r.path())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	write := func(to string, b []byte) {
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(changed, []byte(strings.Replace(string(source), r.on, r.off, 1)))
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	write(overlay, b)
	return overlay
}

// runCore runs the core's tests up to the first that fails, and tells whether
// none did.
func runCore(t *testing.T, root, overlay string) (string, bool) {
	t.Helper()
	args := []string{"test", "-vet=off", "-failfast", "-run=^Test", "-skip=^TestModel$|^TestMemory|Alloc|Bomb|^TestT|Compressed"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./processor/meter", "./processor/dialect")...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

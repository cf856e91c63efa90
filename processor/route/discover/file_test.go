package discover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit/bubble"
	"github.com/inferspan/inferspan/processor/route"
)

// lines has one endpoint a line, and an end that says so.
type lines struct{}

func (lines) Parse(_ string, data []byte) ([]route.Endpoint, error) {
	text, whole := strings.CutSuffix(string(data), "end")
	if !whole {
		return nil, errors.New("no end")
	}
	var out []route.Endpoint
	for line := range strings.FieldsSeq(text) {
		out = append(out, route.Endpoint{Address: line})
	}
	return out, nil
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// watchFile runs a source of file for as long as during takes, which begins between
// two looks.
func watchFile(t *testing.T, file string, during func(h *heard)) {
	t.Helper()
	follow(t, File{Path: file, Format: lines{}}, func(h *heard) {
		bubble.Pass(time.Second)
		during(h)
	})
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints")
	put(t, file, "a end")
	watchFile(t, file, func(h *heard) {
		h.want(t, "0s found a")
		put(t, file, "a b") // still being written
		bubble.Pass(2 * time.Second)
		put(t, file, "a b c end")
		bubble.Pass(20 * time.Second)
		h.want(t, "6s found a b c")
		put(t, file, "a b c d")
		bubble.Pass(20 * time.Second)
		h.want(t, "26s failed: read the endpoints: no end") // told once
		put(t, file, "a b c end")
		bubble.Pass(20 * time.Second)
		h.want(t, "46s found a b c") // it is well again
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		bubble.Pass(20 * time.Second)
		h.want(t, "1m6s failed: read the endpoints: open "+file+": no such file or directory")
	})
}

// A mount of a ConfigMap changes by a symbolic link that moves.
func TestFile_Links(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"one": "a end", "two": "b end"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, "endpoints"), text)
	}
	point := func(to string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.Symlink(to, next), os.Rename(next, filepath.Join(dir, "data"))); err != nil {
			t.Fatal(err)
		}
	}
	point("one")
	watchFile(t, filepath.Join(dir, "data", "endpoints"), func(h *heard) {
		h.want(t, "0s found a")
		point("two")
		bubble.Pass(20 * time.Second)
		h.want(t, "4s found b")
		other := filepath.Join(dir, "other")
		put(t, other, "c end")
		if err := os.Rename(other, filepath.Join(dir, "two", "endpoints")); err != nil {
			t.Error(err)
		}
		bubble.Pass(20 * time.Second)
		h.want(t, "24s found c")
	})
}

// A file that is not there at first is no empty one.
func TestFile_Late(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints")
	watchFile(t, file, func(h *heard) {
		h.want(t, "0s failed: read the endpoints: open "+file+": no such file or directory")
		put(t, file, "a end")
		bubble.Pass(20 * time.Second)
		h.want(t, "4s found a")
		put(t, file, strings.Repeat("a ", maxFile/2)+"end")
		bubble.Pass(20 * time.Second)
		h.want(t, "24s failed: read the endpoints: "+file+" is larger than 4194304 bytes")
	})
}

// A pipe is not waited for.
func TestFile_Pipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := readFile(file); c.err == nil || !strings.HasSuffix(c.err.Error(), "is no regular file") {
		t.Errorf("got %q, %v", c.data, c.err)
	}
}

package discover

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/inferspan/inferspan/processor/route"
)

// fileInterval is how often a file is looked at. It is read each time, which
// finds every kind of change on every kind of file system: a rename, a mount's
// symbolic link that moves (Kubernetes), a network's disk.
const fileInterval = 2 * time.Second

// maxFile is the largest file that is read: a hundred thousand endpoints fit.
const maxFile = 4 << 20

// File is a file that holds endpoints.
type File struct {
	Path   string
	Format Format
}

// Format is how a file says its endpoints. It is a value rather than a function,
// which is never equal to another: sources that are equal are not run anew.
type Format interface {
	// Parse reads what the file at path holds; path is for errors.
	Parse(path string, data []byte) ([]route.Endpoint, error)
}

// String implements Source.
func (f File) String() string { return "file " + f.Path }

// Run implements Source. A change is taken when two looks in a row saw the same,
// so that half a file is not taken for all of it.
func (f File) Run(ctx context.Context, to Sink) error {
	taken := readFile(f.Path)
	f.take(taken, to)
	for polled := taken; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(fileInterval):
		}
		now := readFile(f.Path)
		if now.same(polled) && !now.same(taken) {
			f.take(now, to)
			taken = now
		}
		polled = now
	}
}

func (f File) take(c content, to Sink) {
	endpoints, err := []route.Endpoint(nil), c.err
	if err == nil {
		endpoints, err = f.Format.Parse(f.Path, c.data)
	}
	if err != nil {
		to.Failed(fmt.Errorf("read the endpoints: %w", err))
		return
	}
	to.Found(endpoints)
}

// content is what a file holds, or why it can't be read.
type content struct {
	data []byte
	err  error
}

func (c content) same(d content) bool {
	if c.err != nil && d.err != nil {
		return c.err.Error() == d.err.Error()
	}
	return c.err == nil && d.err == nil && bytes.Equal(c.data, d.data)
}

func readFile(name string) content {
	// A pipe would be waited for without end.
	if i, err := os.Stat(name); err == nil && !i.Mode().IsRegular() {
		return content{err: fmt.Errorf("%s is no regular file", name)}
	}
	f, err := os.Open(name)
	if err != nil {
		return content{err: err}
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return content{data: data, err: err}
}

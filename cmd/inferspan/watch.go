package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"os"
	"time"
)

// watchInterval is how often watched files are looked at. They are small, and
// reading them finds every kind of change, on every kind of file system: a
// rename, a mount's symbolic link that moves (Kubernetes), a network's disk.
const watchInterval = 2 * time.Second

// maxWatched is how much of a file is looked at.
const maxWatched = 4<<20 + 1

// digest stands for the content of some files, or for why they can't be read.
type digest [sha256.Size]byte

func digestOf(files []string) digest {
	h := sha256.New()
	for _, name := range files {
		if err := addFile(h, name); err != nil {
			// Whatever was read before the fault is in it already.
			_, _ = io.WriteString(h, err.Error())
		}
	}
	return digest(h.Sum(nil))
}

// errNoFile is of what can't be read twice, such as a pipe: to look at it would
// take from it what is to be read, or wait for it without end.
var errNoFile = errors.New("no regular file")

func addFile(h hash.Hash, name string) error {
	if i, err := os.Stat(name); err != nil || !i.Mode().IsRegular() {
		return cmp.Or(err, errNoFile)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	n, err := io.Copy(h, io.LimitReader(f, maxWatched))
	// Bytes must not move from one file to the next unseen.
	_ = binary.Write(h, binary.BigEndian, n)
	return err
}

// watched is a part of the configuration that lies in files.
type watched struct {
	name  string
	files []string
	// read takes what the files hold now.
	read func() error
	// taken is what read was last called on, polled what the last poll saw.
	taken, polled digest
}

// watch returns what watches files; what they hold now is taken as read.
func watch(name string, files []string) *watched {
	d := digestOf(files)
	return &watched{name: name, files: files, taken: d, polled: d}
}

// due tells whether the files hold something else than was taken, and did so at
// the poll before: half a file, or one file of a pair, is not taken for all.
func (w *watched) due() bool {
	d := digestOf(w.files)
	settled := d == w.polled
	w.polled = d
	return settled && d != w.taken
}

// reloader reads the parts of the configuration anew.
type reloader struct {
	parts []*watched
	// report gets what became of one part.
	report func(part string, err error)
}

// run looks at the files at each tick, and reads them all at each signal, until
// ctx ends.
func (r *reloader) run(ctx context.Context, ticks <-chan time.Time, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			r.look(false)
		case <-signals:
			r.look(true)
		}
	}
}

// look reads what is due, or every part.
func (r *reloader) look(every bool) {
	for _, w := range r.parts {
		if !w.due() && !every {
			continue
		}
		w.taken = w.polled
		r.report(w.name, w.read())
	}
}

package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// nameLayout begins the name of a file: its order is that of time.
	nameLayout = "20060102T150405.000000Z"
	fileEnd    = ".jsonl"
	unfinished = ".tmp"

	dirMode  = 0o700
	fileMode = 0o600
)

// ownName tells the files that are ours, whole or unfinished. Others are never
// touched.
var ownName = regexp.MustCompile(`^\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{32}\.jsonl(\.tmp)?$`)

// shelf is a directory of recordings that together take a number of bytes.
type shelf struct {
	dir      string
	maxBytes int64
	files    []shelved // the oldest first
	bytes    int64     // of files. Invariant: <= maxBytes
}

type shelved struct {
	name string
	size int64
}

// openShelf makes the directory where it is not there, finds the recordings that
// are, and removes what an earlier process left unfinished.
func openShelf(dir string, maxBytes int64) (*shelf, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	entries, err := os.ReadDir(dir) // in the order of their names
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	s := &shelf{dir: dir, maxBytes: maxBytes}
	for _, e := range entries {
		if !ownName.MatchString(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("look at a recording: %w", err)
		}
		if strings.HasSuffix(e.Name(), unfinished) {
			if err := s.remove(e.Name()); err != nil {
				return nil, err
			}
			continue
		}
		s.files = append(s.files, shelved{e.Name(), info.Size()})
		s.bytes += info.Size()
	}
	if err := s.makeRoom(0); err != nil {
		return nil, err
	}
	// That files can be made shows now, and not with the first exchange.
	probe, err := os.CreateTemp(dir, ".probe-")
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	return s, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// put writes a file whole or not at all, and removes the oldest where there is
// no room for it.
func (s *shelf) put(name string, text []byte) error {
	name += fileEnd
	size := int64(len(text))
	if size > s.maxBytes {
		return fmt.Errorf("write %s: it takes %d bytes, and all may take %d", name, size, s.maxBytes)
	}
	if err := s.makeRoom(size); err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path+unfinished, text, fileMode); err != nil {
		return errors.Join(fmt.Errorf("write a recording: %w", err), s.remove(name+unfinished))
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return errors.Join(fmt.Errorf("finish a recording: %w", err), s.remove(name+unfinished))
	}
	s.files = slices.DeleteFunc(s.files, func(f shelved) bool {
		if f.name == name { // it was overwritten
			s.bytes -= f.size
		}
		return f.name == name
	})
	s.files = append(s.files, shelved{name, size})
	s.bytes += size
	return nil
}

// makeRoom removes the oldest until size bytes more may be taken.
func (s *shelf) makeRoom(size int64) error {
	for len(s.files) > 0 && s.bytes+size > s.maxBytes {
		if err := s.remove(s.files[0].name); err != nil {
			return err
		}
		s.bytes -= s.files[0].size
		s.files = s.files[1:]
	}
	return nil
}

// remove removes a file, if somebody else has not.
func (s *shelf) remove(name string) error {
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old recording: %w", err)
	}
	return nil
}

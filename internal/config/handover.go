package config

import (
	"bytes"
	"fmt"
	"os"
)

// minKey is the least length of a key, in bytes.
const minKey = 16

// Handover is about what the deciding filter of a split deployment tells the
// observing one.
type Handover struct {
	// KeyFile holds the key by which it is signed; empty: it is not.
	KeyFile string `yaml:"key_file"`
}

// Key reads the key, nil where there is none.
func (h Handover) Key() ([]byte, error) {
	if h.KeyFile == "" {
		return nil, nil
	}
	b, err := os.ReadFile(h.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	key := bytes.TrimSpace(b)
	if len(key) < minKey {
		return nil, fmt.Errorf("read the key: %s has %d bytes", h.KeyFile, len(key))
	}
	return key, nil
}

func (v *validator) handover(h Handover) {
	if _, err := h.Key(); err != nil {
		v.failf("handover.key_file", "%s; allowed: a file with a key of %d bytes or more, such as `openssl rand -hex 32` writes", err, minKey)
	}
}

package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor"
)

// newRecorder returns what writes exchanges to files; nil where none are to be.
func newRecorder(c config.Record, count func(event string), log *slog.Logger) (*recording.Recorder, error) {
	if c.Dir == "" {
		return nil, nil //nolint:nilnil // no recorder is not a fault
	}
	r, err := recording.NewRecorder(recording.RecorderConfig{
		Dir:         c.Dir,
		MaxBytes:    int64(c.MaxBytes),
		Every:       c.Every,
		KeepContent: c.Content == "keep",
		Count:       count,
		Logger:      log,
	})
	if err != nil {
		return nil, fmt.Errorf("record.dir: %w", err)
	}
	log.Info("exchanges are recorded", "dir", c.Dir, "content", c.Content, "every", c.Every)
	return r, nil
}

// recordWith is how the processor gets at r, which may be nil.
func recordWith(r *recording.Recorder) func() processor.Recording {
	if r == nil {
		return nil
	}
	return func() processor.Recording {
		if t := r.Begin(); t != nil {
			return t
		}
		return nil // and not a nil Take, which would be one
	}
}

// endRecorder writes what waits to be written, if anything does.
func (s *server) endRecorder(ctx context.Context) error {
	if s.recorder == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	return s.recorder.Close(ctx)
}

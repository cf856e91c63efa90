package main

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/inferspan/inferspan/internal/config"
)

// partFile is the part of the configuration that the file itself is; the others
// are named as their keys.
const partFile = "file"

// newReloader returns what keeps s to what file says. taken is how the file was
// when s got its configuration.
func newReloader(file string, taken *watched, s *server, level *slog.LevelVar) *reloader {
	r := &reloader{parts: []*watched{taken}}
	for _, c := range []*certificates{s.tls, s.adminTLS} {
		if c != nil {
			r.parts = append(r.parts, c.watched)
		}
	}
	names := make([]string, 0, len(r.parts))
	for _, w := range r.parts {
		names = append(names, w.name)
	}
	s.telemetry.ConfigWatched(names...)

	state := &reloadState{}
	running := s.config
	taken.read = func() error {
		next, err := config.Reload(file)
		if err != nil {
			return err
		}
		applied, change := running.Change(next)
		if err := s.apply(applied); err != nil {
			return err
		}
		level.Set(levelOf(applied.Log))
		running, state.change = applied, change
		return nil
	}
	r.report = func(part string, err error) {
		state.note(part, err)
		s.telemetry.ConfigRead(part, err)
		s.telemetry.ConfigCurrent(state.current())
		switch {
		case err != nil:
			s.log.Error("the configuration can't be used, what ran before runs on", "part", part, "faults", faultsOf(err))
		case part != partFile:
			s.log.Info("certificates read", "part", part)
		default:
			s.log.Info("configuration read", "file", file, "applied", state.change.Applied)
			if keys := state.change.Restart; len(keys) > 0 {
				s.log.Warn("the configuration needs a restart", "file", file, "keys", keys)
			}
		}
	}
	return r
}

// reloadState is what became of the parts when last read.
type reloadState struct {
	failed []string // the parts that could not be read
	change config.Change
}

func (s *reloadState) note(part string, err error) {
	s.failed = slices.DeleteFunc(s.failed, func(p string) bool { return p == part })
	if err != nil {
		s.failed = append(s.failed, part)
	}
}

// current tells whether what runs is all that was configured.
func (s *reloadState) current() bool { return len(s.failed)+len(s.change.Restart) == 0 }

// faultsOf returns err as texts of one line each.
func faultsOf(err error) []string {
	if faults, ok := errors.AsType[*config.Error](err); ok {
		return faults.Lines()
	}
	return []string{err.Error()}
}

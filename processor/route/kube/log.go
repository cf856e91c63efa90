package kube

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// SetLogger has what Kubernetes' client library logs go to h, at the level
// debug: what of it matters is told by the sources. It is to be called once,
// before any source runs.
func SetLogger(h slog.Handler) { klog.SetSlogLogger(slog.New(demoted{h})) }

// demoted handles all records as if they were for debugging.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	if !d.Enabled(ctx, r.Level) {
		return nil // the library does not ask before errors
	}
	return d.Handler.Handle(ctx, r)
}

func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }

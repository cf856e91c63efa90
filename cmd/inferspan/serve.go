package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/inferspan/inferspan/internal/config"
)

// serve runs the service until the end of ctx or the first SIGTERM or SIGINT.
func serve(ctx context.Context, args []string, stderr io.Writer) int {
	flags := newFlags("serve", "--config FILE", stderr)
	file := flags.String("config", "", "the configuration")
	if _, ok := operands(flags, args, 0); !ok {
		return exitUsage
	}
	if *file == "" {
		flags.Usage()
		return exitUsage
	}
	c, err := config.Load(*file)
	if err != nil {
		writeFaults(stderr, err)
		return exitFault
	}
	log := newLogger(c.Log, stderr)
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	for _, warning := range c.Warnings(os.Getenv) {
		log.Warn("configuration", "file", *file, "warning", warning)
	}
	name, commit := build()
	log.Info("start", "version", name, "commit", commit, "listen", c.Listen.String(), "admin", string(c.Admin), "pools", poolSizes(c.Pools))
	s, err := newServer(ctx, c, name, log)
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		log.Error("stop", "error", err)
		return exitFault
	}
	log.Info("stop")
	return 0
}

// untilSignal returns a context that ends with the first signal; a signal after
// the end of the context ends the process at once. stop takes both back.
func untilSignal(ctx context.Context, log *slog.Logger) (_ context.Context, stop func()) {
	// signal.NotifyContext would lose a second signal close behind the first.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
		select {
		case s := <-signals:
			log.Error("stop at once, telemetry is lost", "signal", s.String())
			os.Exit(exitFault)
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	}
}

func newLogger(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	// The configuration allows slog's own names only.
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// poolSizes returns the number of endpoints by pool.
func poolSizes(pools []config.Pool) map[string]int {
	sizes := make(map[string]int, len(pools))
	for _, p := range pools {
		sizes[p.Name] = len(p.Endpoints)
	}
	return sizes
}

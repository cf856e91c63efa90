package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/internal/logs"
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
	taken := watch(partFile, []string{*file})
	c, err := config.Load(*file)
	if err != nil {
		writeFaults(stderr, err)
		return exitFault
	}
	level := new(slog.LevelVar)
	level.Set(levelOf(c.Log))
	lines := logs.NewSampler(newHandler(c.Log.Format, level, stderr))
	defer lines.Close()
	log := slog.New(lines)
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	for _, warning := range c.Warnings(os.Getenv) {
		log.Warn("configuration", "file", *file, "warning", warning)
	}
	name, commit := build()
	log.Info("start", "version", name, "commit", commit, "listen", c.Listen.String(), "admin", string(c.Admin), "pools", poolsOf(c))
	s, err := newServer(ctx, c, name, log)
	if err == nil {
		reload := newReloader(*file, taken, s, level)
		err = s.run(ctx, func(ctx context.Context) {
			ticker := time.NewTicker(watchInterval)
			defer ticker.Stop()
			reload.run(ctx, ticker.C, hangUps)
		})
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

func levelOf(c config.Log) slog.Level {
	var level slog.Level
	// The configuration allows slog's own names only.
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}

func newHandler(format string, level slog.Leveler, w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

// poolsOf returns by pool the number of its endpoints, or where they are found.
func poolsOf(c config.Config) map[string]any {
	pools := make(map[string]any, len(c.Pools))
	for _, p := range c.Pools {
		if p.Discover != nil {
			pools[p.Name] = source(*p.Discover, c.Kubernetes).String()
		} else {
			pools[p.Name] = len(p.Endpoints)
		}
	}
	return pools
}

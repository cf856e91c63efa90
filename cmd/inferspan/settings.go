package main

import (
	"crypto/rand"
	"log/slog"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor"
	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/wire"
	"github.com/inferspan/inferspan/telemetry"
)

func routes(c config.Config) route.Config {
	var r route.Config
	for _, p := range c.Pools {
		pool := route.Pool{Name: p.Name, Endpoints: endpoints(p.Endpoints), Rules: rules(&p)}
		if p.Discover != nil {
			pool.Source = source(*p.Discover, c.Kubernetes).String()
		}
		pool.Shed = route.Shed{Limits: limits(p.Shed.Soft()), Hard: limits(p.Shed.Hard)}
		r.Pools = append(r.Pools, pool)
	}
	for _, m := range c.Models {
		model := route.Model{Name: m.Name, Aliases: m.Aliases, Prefixes: m.Prefixes}
		for _, t := range m.Targets {
			model.Targets = append(model.Targets, route.Target{Pool: t.Pool, Model: t.Model, Weight: t.Weight})
		}
		r.Models = append(r.Models, model)
	}
	return r
}

func limits(l config.Limits) route.Limits {
	return route.Limits{InFlight: l.InFlight, Queue: l.Queue, KVUsage: float64(l.KVUsage)}
}

// rules are how the endpoints of p are picked.
func rules(p *config.Pool) route.Rules {
	return route.Rules{
		Policy:         p.Policy,
		Fallbacks:      p.FallbackEndpoints - 1,
		LoadBound:      float64(p.LoadBound),
		SlowStart:      p.SlowStart,
		PanicThreshold: float64(p.PanicThreshold),
		Eject: route.Eject{
			Failures: p.Eject.Failures, Rate: float64(p.Eject.FailureShare),
			Base: p.Eject.Time, Max: p.Eject.MaxTime, Share: float64(p.Eject.MaxShare),
		},
	}
}

// logEjections returns what logs that an endpoint gets nothing for a while.
func logEjections(log *slog.Logger) func(route.Ejection) {
	return func(e route.Ejection) {
		log.Warn("endpoint ejected: it fails", "endpoint", e.Endpoint, "pool", e.Pool, "failure", e.Failure.String(), "for", e.For.String())
	}
}

func telemetrySettings(c config.Config, version string, log *slog.Logger, live func() []meter.Live) telemetry.Config {
	return telemetry.Config{
		Version: version,
		Models:  config.Names(c.Models),
		Pools:   poolNames(c.Pools),
		Trace: telemetry.TraceConfig{
			ClientContext:   c.Trace.ClientContext,
			ParentSampled:   c.Trace.ParentSampled,
			UpstreamSampled: c.Trace.UpstreamSampled,
			Detail:          c.Trace.Detail,
			ChunkMax:        c.Trace.ChunkEvents.Max,
			EngineSpans:     c.Trace.EngineSpans == "on",
			Events:          c.Trace.Events,
			Keep:            keepSettings(c.Trace.Keep),
		},
		SLOs: sloSettings(c.SLO),

		ClientMetrics:    c.Metrics.Client,
		HeaderAttributes: headerAttributes(c.Attributes.FromHeaders),

		Live:   live,
		Logger: log,
	}
}

func poolNames(pools []config.Pool) []string {
	names := make([]string, 0, len(pools))
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names
}

func headerAttributes(all []config.HeaderAttribute) []telemetry.HeaderAttribute {
	out := make([]telemetry.HeaderAttribute, 0, len(all))
	for _, a := range all {
		out = append(out, telemetry.HeaderAttribute{Name: a.Attribute, MaxValues: a.MetricValues})
	}
	return out
}

func captures(all []config.HeaderAttribute) []processor.Capture {
	out := make([]processor.Capture, 0, len(all))
	for _, a := range all {
		out = append(out, processor.Capture{Header: a.Header, Attribute: a.Attribute})
	}
	return out
}

func sloSettings(slos []config.SLO) []telemetry.SLO {
	out := make([]telemetry.SLO, 0, len(slos))
	for _, s := range slos {
		out = append(out, telemetry.SLO{
			Name: s.Name, Operation: s.Match.Operation, Model: s.Match.Model, Pool: s.Match.Pool,
			Thresholds: telemetry.Thresholds{TTFT: s.TTFT, TPOT: s.TPOT, Duration: s.Duration}, Target: float64(s.Target),
		})
	}
	return out
}

func keepSettings(k config.Keep) telemetry.KeepConfig {
	out := telemetry.KeepConfig{Share: meter.Some(float64(k.Share)), Slow: telemetry.Thresholds(k.Slow)}
	if k.Always != nil {
		out.Always = make([]string, 0, len(k.Always))
	}
	for _, p := range k.Always {
		out.Always = append(out.Always, string(p))
	}
	return out
}

func processorSettings(c config.Config, log *slog.Logger, r *route.Router, t *telemetry.Telemetry, j processor.Journal) processor.Config {
	return processor.Config{
		Telemetry:      t,
		Router:         r,
		Journal:        j,
		Logger:         log,
		AssumeRequest:  bodyModes[c.ExtProc.AssumeMode.RequestBodyMode],
		AssumeResponse: bodyModes[c.ExtProc.AssumeMode.ResponseBodyMode],
		HoldLimit:      int(c.Request.HoldLimit),
		HoldTotal:      int64(c.Request.HoldTotal),
		IdleTimeout:    c.Exchange.IdleTimeout,
		DeferredClose:  c.ExtProc.DeferredCloseTimeout,
		PoolHeader:     c.Request.PoolHeader,
		SessionHeaders: c.Request.SessionHeaders,

		PreventCompression: c.Response.Compression == "prevent",
		AskUsage:           askUsage[c.Usage.Ask],
		Trusted:            trustedSettings(c.Trusted, log),
		DropBaggage:        c.Trace.ClientContext != "parent",
		Capture:            captures(c.Attributes.FromHeaders),
		HandoverKey:        handoverKey(c.Handover, log),
		Meter: meter.Options{
			GapBounds: telemetry.GapBounds(),
			MaxChunks: c.Trace.ChunkEvents.Max,
		},
	}
}

// trustedSettings reads the secret. The file was there when the configuration was
// checked; where it is no longer, nobody is trusted.
func trustedSettings(t config.Trusted, log *slog.Logger) processor.Trusted {
	value, err := t.Expected()
	if err != nil {
		log.Warn("nobody's wishes count", "error", err)
	}
	return processor.Trusted{Header: t.Header, Value: value}
}

// handoverKey reads the key. Where its file is no longer there, a key that nobody
// has stands for it: no hand-over is believed.
func handoverKey(h config.Handover, log *slog.Logger) handover.Key {
	key, err := h.Key()
	if err != nil {
		log.Warn("no hand-over is believed", "error", err)
		return handover.Key(rand.Text())
	}
	return key
}

// sinks hand each finished record to all of them.
type sinks []processor.Journal

func (s sinks) Add(r *meter.Record) {
	for _, sink := range s {
		sink.Add(r)
	}
}

// askUsage are the values of usage.ask.
var askUsage = map[string]processor.AskUsage{
	"never":  processor.AskNever,
	"auto":   processor.AskAuto,
	"always": processor.AskAlways,
}

// bodyModes are the body modes by Envoy's names.
var bodyModes = map[string]wire.BodyMode{
	"NONE":                 wire.ModeNone,
	"BUFFERED":             wire.ModeBuffered,
	"BUFFERED_PARTIAL":     wire.ModeBufferedPartial,
	"STREAMED":             wire.ModeStreamed,
	"FULL_DUPLEX_STREAMED": wire.ModeFullDuplex,
}

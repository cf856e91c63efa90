package main

import (
	"log/slog"
	"sync/atomic"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/scrape"
	"github.com/inferspan/inferspan/telemetry"
)

// asker asks the router's endpoints how they are, as their pools say.
type asker struct {
	router  *route.Router
	pools   atomic.Pointer[map[string]config.Pool]
	scraper *scrape.Scraper
}

func newAsker(pools []config.Pool, r *route.Router, failed func(pool, endpoint, reason string), log *slog.Logger) *asker {
	a := &asker{router: r}
	a.scraper = scrape.New(scrape.Config{
		Targets: a.targets, Router: r, Logger: log,
		Failed: func(t scrape.Target, reason string) { failed(t.Pool, t.Address, reason) },
	})
	a.apply(pools)
	return a
}

// apply has endpoints asked as pools say now.
func (a *asker) apply(pools []config.Pool) {
	byName := make(map[string]config.Pool, len(pools))
	for _, p := range pools {
		byName[p.Name] = p
	}
	a.pools.Store(&byName)
	a.scraper.Refresh()
}

func (a *asker) targets() []scrape.Target {
	pools := *a.pools.Load()
	endpoints := a.router.Endpoints()
	out := make([]scrape.Target, 0, len(endpoints))
	for _, e := range endpoints {
		p := pools[e.Pools[0]]
		t := scrape.Target{Pool: p.Name, Address: e.Address, Failures: p.Health.Failures}
		if s := p.Scrape; s.Enabled {
			t.Metrics = scrape.Page{Interval: s.Interval, Timeout: s.Timeout, Path: string(s.Path), Port: s.Port}
		}
		if h := p.Health; h.Enabled {
			t.Health = scrape.Page{Interval: h.Interval, Timeout: h.Timeout, Path: string(h.Path), Port: h.Port}
		}
		out = append(out, t)
	}
	return out
}

// endpointStates is what telemetry shows of endpoints. One of several pools is
// shown in the first.
func endpointStates(all []route.EndpointState) []telemetry.Endpoint {
	out := make([]telemetry.Endpoint, 0, len(all))
	for _, e := range all {
		out = append(out, telemetry.Endpoint{
			Pool: e.Pools[0], Address: e.Address, InFlight: e.InFlight,
			Queue: meter.Opt[float64](e.Signals.Waiting), KVUsage: meter.Opt[float64](e.Signals.KVUsage),
			Healthy: e.Healthy && !e.Ejected,
		})
	}
	return out
}

package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/inferspan/inferspan/internal/config"
	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/discover"
	"github.com/inferspan/inferspan/processor/route/kube"
	"github.com/inferspan/inferspan/telemetry"
)

// kubeLogger has Kubernetes' library, which has one logger for the process, log
// to that of the first server.
var kubeLogger sync.Once

// discovery finds the endpoints of the pools that do not name theirs.
type discovery struct{ *discover.Manager }

func newDiscovery(router *route.Router, log *slog.Logger) discovery {
	kubeLogger.Do(func() { kube.SetLogger(log.Handler()) })
	return discovery{discover.New(router, log)}
}

// apply has the pools of c found where c says, and router know them.
func (d discovery) apply(c config.Config, router *route.Router) error {
	return d.Apply(sources(c), func() error { return router.Apply(routes(c)) })
}

// missing says what of the pools is not known yet, for people; empty: nothing.
func (d discovery) missing() string {
	var out []string
	for _, s := range d.States() {
		if !s.Found.IsZero() {
			continue
		}
		why := "no answer yet"
		if s.Err != nil {
			why = s.Err.Error()
		}
		out = append(out, fmt.Sprintf("pool %s, %s: %s", s.Pool, s.Source, why))
	}
	return strings.Join(out, "; ")
}

// shown is what telemetry shows of it.
func (d discovery) shown() []telemetry.Discovery {
	states := d.States()
	out := make([]telemetry.Discovery, 0, len(states))
	for _, s := range states {
		out = append(out, telemetry.Discovery{
			Pool: s.Pool, Endpoints: s.Endpoints,
			Current: s.Err == nil && !s.Found.IsZero(),
			Changes: s.Changes, Failures: s.Failures,
		})
	}
	return out
}

// sources are where the pools of c are found that do not name their endpoints.
func sources(c config.Config) map[string]discover.Source {
	out := map[string]discover.Source{}
	for _, p := range c.Pools {
		if p.Discover != nil {
			out[p.Name] = source(*p.Discover, c.Kubernetes)
		}
	}
	return out
}

func source(d config.Discover, k config.Kubernetes) discover.Source {
	switch {
	case d.File != nil:
		return discover.File{Path: d.File.Path, Format: listed{}}
	case d.DNS != nil:
		return discover.DNS{
			Name: d.DNS.Name, Record: d.DNS.Record, Port: d.DNS.Port, Server: string(d.DNS.Server),
			MinInterval: d.DNS.MinInterval, MaxInterval: d.DNS.MaxInterval,
			KeepAbsent: d.DNS.KeepAbsent, KeepFailed: d.DNS.KeepFailed,
		}
	case d.InferencePool != nil:
		return kube.InferencePool{Name: d.InferencePool.Name, Namespace: d.InferencePool.Namespace, Kubeconfig: k.Kubeconfig}
	default: // the configuration has exactly one
		return kube.Service{Name: d.Service.Name, Namespace: d.Service.Namespace, Port: d.Service.Port, Kubeconfig: k.Kubeconfig}
	}
}

// listed is the form of the key endpoints.
type listed struct{}

// Parse implements discover.Format.
func (listed) Parse(path string, data []byte) ([]route.Endpoint, error) {
	list, err := config.ParseEndpoints(path, data)
	return endpoints(list), err
}

func endpoints(list []config.Endpoint) []route.Endpoint {
	out := make([]route.Endpoint, 0, len(list))
	for _, e := range list {
		out = append(out, route.Endpoint{Address: string(e.Address), Weight: e.Weight})
	}
	return out
}

package kube

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/discover"
)

var sliceResource = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// serviceLabel is the label by which EndpointSlices name their Service.
const serviceLabel = "kubernetes.io/service-name"

// Service is a Service, whose ready endpoints are the pool's, by its
// EndpointSlices.
type Service struct {
	Name string
	// Namespace is the Service's; empty: as InferencePool's.
	Namespace string
	// Port is the name of the Service's port; empty: the only one it has.
	Port string
	// Kubeconfig is a file; empty: the service account of the pod.
	Kubeconfig string
}

// slice is what is kept of an EndpointSlice.
type slice struct {
	AddressType string     `json:"addressType"`
	Endpoints   []endpoint `json:"endpoints"`
	Ports       []struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	} `json:"ports"`
}

// endpoint is one server of an EndpointSlice.
type endpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready *bool `json:"ready"` // nil: unknown, which is to be taken for true
	} `json:"conditions"`
	TargetRef struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"targetRef"`
}

// String implements discover.Source.
func (v Service) String() string {
	s := "service " + object(v.Namespace, v.Name)
	if v.Port != "" {
		s += " port " + v.Port
	}
	return s + by(v.Kubeconfig)
}

// Run implements discover.Source.
func (v Service) Run(ctx context.Context, to discover.Sink) error {
	return run(ctx, v.Kubeconfig, to, v.follow)
}

// follow tells to what c has, until ctx ends.
func (v Service) follow(ctx context.Context, c *cluster, to discover.Sink) error {
	ctx, end := c.following(ctx)
	defer end()
	s := make(signal, 1)
	namespace := c.where(v.Namespace)
	watching := watchObjects[slice](ctx, c, sliceResource, namespace, s, func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{serviceLabel: v.Name}.String()
	})
	defer watching.stop()
	return s.each(ctx, func() {
		found, ok, err := watching.now()
		if err == nil && !ok {
			return
		}
		var endpoints []route.Endpoint
		if err == nil {
			endpoints, err = v.endpoints(found)
		}
		switch {
		case err != nil:
			to.Failed(err)
		case len(found) == 0:
			to.Lost(fmt.Errorf("there is no EndpointSlice of a Service %s", object(namespace, v.Name)))
		default:
			to.Found(endpoints)
		}
	})
}

// endpoints returns the ready endpoints at v's port, of a server with addresses
// of both families the IPv4 one: it must not count as two.
func (v Service) endpoints(all []slice) ([]route.Endpoint, error) {
	addrs := map[string]netip.Addr{}     // by server
	found := map[string]route.Endpoint{} // the same
	for _, s := range all {
		port, err := v.portOf(s)
		if err != nil {
			return nil, err
		}
		for _, e := range s.Endpoints {
			addr, ok := e.address()
			if !ok || port == 0 {
				continue
			}
			server := e.server(addr)
			if was, is := addrs[server]; !is || addr.Is4() && !was.Is4() {
				addrs[server], found[server] = addr, at(addr, port)
			}
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// portOf returns the number that v's port has in s; 0 where s has no ports, as
// one without endpoints.
func (v Service) portOf(s slice) (int, error) {
	names := make([]string, 0, len(s.Ports))
	for _, p := range s.Ports {
		if p.Name == v.Port || v.Port == "" && len(s.Ports) == 1 {
			return p.Port, nil
		}
		names = append(names, `"`+p.Name+`"`)
	}
	slices.Sort(names)
	switch {
	case len(s.Ports) == 0:
		return 0, nil
	case v.Port == "":
		return 0, fmt.Errorf("the Service %s has several ports, %s: set `port` to one", v.Name, strings.Join(names, ", "))
	}
	return 0, fmt.Errorf("the Service %s has no port %q, its ports are %s", v.Name, v.Port, strings.Join(names, ", "))
}

// address returns where e is reached, and false where it takes no requests or
// is no address (FQDN).
func (e endpoint) address() (netip.Addr, bool) {
	if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
		return netip.Addr{}, false
	}
	// The others, where there are any, lead to the same server.
	addr, err := netip.ParseAddr(e.Addresses[0])
	return addr, err == nil
}

// server says which server e is, whatever its address.
func (e endpoint) server(addr netip.Addr) string {
	if e.TargetRef.Name == "" {
		return addr.String()
	}
	return e.TargetRef.Kind + " " + e.TargetRef.Namespace + "/" + e.TargetRef.Name
}

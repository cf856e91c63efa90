package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/inferspan/inferspan/processor/route"
	"github.com/inferspan/inferspan/processor/route/discover"
)

var (
	poolResource = schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}
	podResource  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// InferencePool is an InferencePool of the Gateway API, whose ready pods are the
// endpoints, one for each of its target ports.
type InferencePool struct {
	Name string
	// Namespace is the pool's; empty: that of the pod that this runs in, or of
	// the kubeconfig's context.
	Namespace string
	// Kubeconfig is a file; empty: the service account of the pod.
	Kubeconfig string
}

// inferencePool is what is kept of an InferencePool.
type inferencePool struct {
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		TargetPorts []struct {
			Number int `json:"number"`
		} `json:"targetPorts"`
	} `json:"spec"`
}

// pod is what is kept of a pod.
type pod struct {
	Metadata struct {
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// String implements discover.Source.
func (p InferencePool) String() string {
	return "inference_pool " + object(p.Namespace, p.Name) + by(p.Kubeconfig)
}

// Run implements discover.Source.
func (p InferencePool) Run(ctx context.Context, to discover.Sink) error {
	return run(ctx, p.Kubeconfig, to, p.follow)
}

// follow tells to what c has, until ctx ends.
func (p InferencePool) follow(ctx context.Context, c *cluster, to discover.Sink) error {
	ctx, end := c.following(ctx)
	defer end()
	s := make(signal, 1)
	namespace := c.where(p.Namespace)
	pools := watchObjects[inferencePool](ctx, c, poolResource, namespace, s, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", p.Name).String()
	})
	defer pools.stop()
	pods := podsOf{cluster: c, namespace: namespace, signal: s}
	defer pods.stop()
	return s.each(ctx, func() {
		found, ok, err := pools.now()
		switch {
		case err != nil:
			to.Failed(err)
		case !ok:
		case len(found) == 0:
			pods.stop()
			to.Lost(fmt.Errorf("there is no InferencePool %s", object(namespace, p.Name)))
		default:
			pods.tell(ctx, found[0], to)
		}
	})
}

// podsOf follows the pods of one InferencePool, whose selector may change.
type podsOf struct {
	*cluster

	namespace string
	signal    signal
	selector  string // of pods
	pods      *watched[pod]
}

func (f *podsOf) stop() {
	if f.pods != nil {
		f.pods.stop()
		f.pods = nil
	}
}

// tell tells to the endpoints of pool, when its pods are known.
func (f *podsOf) tell(ctx context.Context, pool inferencePool, to discover.Sink) {
	if len(pool.Spec.Selector.MatchLabels) == 0 {
		// No selector selects every pod of the namespace.
		f.stop()
		to.Lost(errors.New("the InferencePool has no `selector.matchLabels`"))
		return
	}
	selector := labels.Set(pool.Spec.Selector.MatchLabels).String()
	if f.pods == nil || f.selector != selector {
		f.stop()
		f.selector = selector
		f.pods = watchObjects[pod](ctx, f.cluster, podResource, f.namespace, f.signal, func(o *metav1.ListOptions) {
			o.LabelSelector = selector
		})
	}
	pods, ok, err := f.pods.now()
	switch {
	case err != nil:
		to.Failed(err)
	case ok:
		to.Found(endpointsOf(pool, pods))
	}
}

// endpointsOf returns an endpoint for each ready pod and target port.
func endpointsOf(pool inferencePool, pods []pod) []route.Endpoint {
	var out []route.Endpoint
	for _, p := range pods {
		addr, err := netip.ParseAddr(p.Status.PodIP)
		if err != nil || !p.ready() {
			continue
		}
		for _, port := range pool.Spec.TargetPorts {
			out = append(out, at(addr, port.Number))
		}
	}
	return out
}

// at is the endpoint at a port of addr. The router refuses numbers that are no
// port.
func at(addr netip.Addr, port int) route.Endpoint {
	return route.Endpoint{Address: net.JoinHostPort(addr.String(), strconv.Itoa(port))}
}

// ready tells whether p takes requests: one that is being deleted finishes what
// it has, and takes nothing new.
func (p pod) ready() bool {
	if p.Metadata.DeletionTimestamp != "" {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// object names an object for people.
func object(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// by names a kubeconfig for people.
func by(kubeconfig string) string {
	if kubeconfig == "" {
		return ""
	}
	return " by " + kubeconfig
}

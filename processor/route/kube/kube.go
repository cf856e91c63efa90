// Package kube finds the endpoints of pools in Kubernetes: the pods of an
// InferencePool, or the EndpointSlices of a Service.
//
// Each source watches its objects by client-go's reflectors, which list them,
// follow what changes, and begin anew by themselves where the connection or the
// API server is lost. Only what says something of an endpoint is kept of an
// object.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/inferspan/inferspan/processor/route/discover"
)

// cluster is a connection to an API server. The client is the dynamic one: the
// generated clients would bring every type of Kubernetes into the program.
type cluster struct {
	dynamic.Interface

	http *http.Client
	// namespace is where objects are that are named without one.
	namespace string
	// broke ends the source that follows the cluster, with its failure.
	broke context.CancelCauseFunc
}

// connect returns a connection by a kubeconfig file, or where that is empty, by
// the service account of the pod that this runs in. It asks nothing yet.
func connect(kubeconfig string) (*cluster, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := loaded.ClientConfig()
	if kubeconfig == "" && clientcmd.IsEmptyConfig(err) {
		err = errors.New("this is no pod of a cluster; set `kubernetes.kubeconfig`")
	}
	if err != nil {
		return nil, fmt.Errorf("read how to reach Kubernetes: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	config.UserAgent = "inferspan"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read how to reach Kubernetes: %w", err)
	}
	api, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("read how to reach Kubernetes: %w", err)
	}
	return &cluster{Interface: api, http: client, namespace: namespace}, nil
}

// run has follow tell to what the cluster that kubeconfig leads to has, until ctx
// ends.
func run(ctx context.Context, kubeconfig string, to discover.Sink, follow func(context.Context, *cluster, discover.Sink) error) error {
	c, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	defer c.close()
	return follow(ctx, c, to)
}

// following returns ctx for a source that follows c: it ends early where the
// source breaks.
func (c *cluster) following(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, broke := context.WithCancelCause(ctx)
	c.broke = broke
	return ctx, func() { broke(nil) }
}

// failure returns why ctx, of following, ended: nil where it was to.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (c *cluster) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// where returns namespace, or where that is empty, the connection's own.
func (c *cluster) where(namespace string) string {
	if namespace == "" {
		return c.namespace
	}
	return namespace
}

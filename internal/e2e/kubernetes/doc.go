// Package kubernetes checks discovery in Kubernetes against a real API server,
// and that it takes what deploy/kubernetes holds. What a cluster's controllers
// and nodes would do, the tests do: nothing else is a stand-in but the model
// servers.
//
// Its tests have the build tag e2e_k8s and need the programs of `make tools`;
// `make e2e-k8s` runs them.
package kubernetes
